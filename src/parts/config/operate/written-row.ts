import { ConflictError, type FieldError, ValidationError } from "../../../base/errors/errors.ts";
import { defined } from "../../../base/types/defined.ts";
import type { ConfigKeyDefinition } from "../declare/key.ts";
import { outOfBounds, typeMismatch } from "../declare/value-check.ts";
import type { ConfigRow } from "../read/rows.ts";
import type { HistoryEntry } from "./operator-session.ts";

/** Options of every write. */
export interface ChangeOptions {
  /** Reason for the history, at most 1,000 characters. */
  readonly reason?: string | undefined;
  /** Version that the row must have, 0 if it was never written. Default: any. */
  readonly expectedVersion?: number | undefined;
}

export interface Writer {
  readonly userId: string | undefined;
  readonly nowMs: number;
}

const maxValueBytes = 16_384;
const maxReason = 1_000;
/** Smallest magnitude in DynamoDB. The SDK refuses to write numbers above 2^53 - 1. */
const smallestNumber = 1e-130;
const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/;

/** @throws ValidationError with every invalid field; ConflictError `version_conflict`. */
export function rowToSet(
  definition: ConfigKeyDefinition,
  {
    value,
    expiresAt,
    ...options
  }: ChangeOptions & { readonly value: unknown; readonly expiresAt?: Date | string | undefined },
  current: ConfigRow | undefined,
  writer: Writer,
): ConfigRow {
  const problem = valueProblem(definition, value);
  const expires = expiryOf(expiresAt, writer.nowMs);
  const fields = optionProblems(options);
  if (problem !== undefined) fields.unshift({ field: "value", error: problem });
  if (typeof expires === "string") fields.push({ field: "expiresAt", error: expires });
  assertAccepted(options, current, fields);
  return {
    value,
    ...stamp(options, current, writer),
    ...(typeof expires === "number" && { expiresAt: expires }),
  };
}

export function rowToReset(
  options: ChangeOptions,
  current: ConfigRow | undefined,
  writer: Writer,
): ConfigRow | undefined {
  assertAccepted(options, current, optionProblems(options));
  if (current === undefined || current.deleted === true) return undefined;
  return tombstone(options, current, writer);
}

/** @throws ConflictError `nothing_to_undo`; the errors of {@link rowToSet}. */
export function versionToRestore(
  { version, ...options }: ChangeOptions & { readonly version?: number | undefined },
  current: ConfigRow | undefined,
): number {
  const fields = optionProblems(options);
  if (version !== undefined && !isVersion(version)) fields.push(wholeNumber("version"));
  assertAccepted(options, current, fields);
  if (versionOf(current) === 0) throw new ConflictError("nothing_to_undo");
  return version ?? versionOf(current) - 1;
}

/** @throws ValidationError if the old value is no longer valid, or was a secret. */
export function rowToRestore(
  definition: ConfigKeyDefinition,
  past: HistoryEntry | undefined,
  options: ChangeOptions,
  current: ConfigRow | undefined,
  writer: Writer,
): ConfigRow {
  if (past === undefined || past.deleted === true) return tombstone(options, current, writer);
  const { value, expiresAt } = past;
  const error = restoringProblem(definition, past, writer.nowMs);
  if (error !== undefined) throw new ValidationError([{ field: "version", error }]);
  return {
    value,
    ...stamp(options, current, writer),
    ...defined({ expiresAt }),
  };
}

function restoringProblem(
  definition: ConfigKeyDefinition,
  { value, expiresAt }: HistoryEntry,
  nowMs: number,
): string | undefined {
  if (definition.encrypted) return "was a secret, which history does not keep; set it again";
  const problem = valueProblem(definition, value);
  if (problem !== undefined) return `its value ${problem}`;
  return expiresAt !== undefined && expiresAt * 1000 <= nowMs ? "its value has expired" : undefined;
}

export function versionOf(row: ConfigRow | undefined): number {
  return isVersion(row?.version) ? row.version : 0;
}

export function isVersion(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function tombstone(
  options: ChangeOptions,
  current: ConfigRow | undefined,
  writer: Writer,
): ConfigRow {
  return { value: undefined, ...stamp(options, current, writer), deleted: true };
}

function stamp(
  { reason }: ChangeOptions,
  current: ConfigRow | undefined,
  { userId, nowMs }: Writer,
) {
  return {
    version: versionOf(current) + 1,
    updatedAt: new Date(nowMs).toISOString(),
    ...defined({ updatedBy: userId, reason }),
  };
}

/** Never contains the value, which may be a secret. */
function valueProblem(definition: ConfigKeyDefinition, value: unknown): string | undefined {
  const mismatch = typeMismatch(definition, value);
  if (mismatch !== undefined) return `${mismatch} but ${classOf(value)}${allowed(definition)}`;
  const problem = outOfBounds(definition.bounds, value);
  if (problem !== undefined) return `${problem}${allowed(definition)}`;
  if (typeof value === "number") {
    const size = Math.abs(value);
    if (size > Number.MAX_SAFE_INTEGER)
      return `is beyond ${Number.MAX_SAFE_INTEGER}, the largest number that is stored exactly`;
    return size > 0 && size < smallestNumber ? `is nearer to 0 than ${smallestNumber}` : undefined;
  }
  return typeof value === "string" ? textProblem(value) : undefined;
}

function allowed({ bounds }: ConfigKeyDefinition): string {
  return bounds === undefined ? "" : `; allowed is a number from ${bounds.min} to ${bounds.max}`;
}

const classes: ReadonlyMap<string, string> = new Map([
  ["undefined", "absent"],
  ["string", "text"],
  ["object", "an object"],
]);

function classOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  return classes.get(typeof value) ?? `a ${typeof value}`;
}

function textProblem(text: string): string | undefined {
  if (!text.isWellFormed()) return "is not well-formed Unicode";
  const bytes = Buffer.byteLength(text);
  return bytes > maxValueBytes ? `has ${bytes} bytes, more than ${maxValueBytes}` : undefined;
}

/** Returns seconds since the epoch, or why the time is invalid. */
function expiryOf(expiresAt: unknown, nowMs: number): number | string | undefined {
  if (expiresAt === undefined || expiresAt === null) return undefined;
  const isText = typeof expiresAt === "string" && isoTime.test(expiresAt) && hasItsDay(expiresAt);
  const time =
    isText || expiresAt instanceof Date ? new Date(expiresAt as Date | string).getTime() : NaN; // safe: one of the two
  if (Number.isNaN(time))
    return "must be a time of ISO 8601 with its zone, such as 2030-01-31T12:00:00Z";
  return time > nowMs ? Math.ceil(time / 1000) : "is not in the future";
}

/** `Date` takes February 31 for March 3. */
function hasItsDay(time: string): boolean {
  const date = new Date(`${time.slice(0, 10)}T00:00Z`);
  return date.getUTCDate() === Number(time.slice(8, 10));
}

function optionProblems({ reason, expectedVersion }: ChangeOptions): FieldError[] {
  const fields: FieldError[] = [];
  if (reason !== undefined) {
    // The operators' API passes on the request's value.
    const text: unknown = reason;
    if (typeof text !== "string" || text.length > maxReason || !text.isWellFormed())
      fields.push({
        field: "reason",
        error: `must be a string of at most ${maxReason} characters`,
      });
  }
  if (expectedVersion !== undefined && !isVersion(expectedVersion))
    fields.push(wholeNumber("expectedVersion"));
  return fields;
}

export function wholeNumber(field: string): FieldError {
  return { field, error: "must be a whole number, 0 or more" };
}

function assertAccepted(
  { expectedVersion }: ChangeOptions,
  current: ConfigRow | undefined,
  problems: readonly FieldError[],
): void {
  if (problems.length > 0) throw new ValidationError(problems);
  if (expectedVersion !== undefined && expectedVersion !== versionOf(current))
    throw new ConflictError("version_conflict");
}
