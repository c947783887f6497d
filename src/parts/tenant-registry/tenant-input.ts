import { ValidationError } from "../../base/errors/errors.ts";
import { isRecord } from "../../base/errors/option-table.ts";
import { refuseWrong, unknownFields } from "../../base/errors/wrong-fields.ts";
import { isIdentifier, maxNameLength } from "../../base/identity/access.ts";
import { isZoneName, knownZone } from "../../base/process/time-zone.ts";
import type { NewTenant, TenantPlace } from "./tenant.ts";

const longestReason = 500;
const maxLimit = 1_000;

/** @throws ValidationError if it is not an ID. */
export function readId(id: unknown): string {
  if (isIdentifier(id)) return id;
  throw new ValidationError([{ field: "id", error: idRule }]);
}

const idRule = `has to be a string of 1 to ${maxNameLength} characters without control characters`;

/** @throws ValidationError with each wrong field. */
export function readNewTenant(given: unknown): Required<Pick<NewTenant, "id" | "timeZone">> & {
  readonly name: string | undefined;
} {
  const { id, name, timeZone: zone = "UTC" } = fieldsOf(given, ["id", "name", "timeZone"]);
  // Names are not case-sensitive, and each one that is stored costs every check of a schedule.
  const timeZone = isZoneName(zone) ? knownZone(zone) : undefined;
  refuseWrong([
    isIdentifier(id) ? undefined : { field: "id", error: idRule },
    name === undefined || isIdentifier(name) ? undefined : { field: "name", error: idRule },
    timeZone === undefined
      ? { field: "timeZone", error: "has to be an IANA time zone, such as Europe/Berlin" }
      : undefined,
  ]);
  // Safe casts: everything was checked.
  return {
    id: id as string,
    name: name as string | undefined,
    timeZone: timeZone as string,
  };
}

/** @throws ValidationError without a reason. */
export function readReason(options: unknown): string {
  const { reason } = fieldsOf(options, ["reason"]);
  const isReason =
    typeof reason === "string" && reason.trim() !== "" && reason.length <= longestReason;
  if (isReason) return reason;
  const error = `has to be a string of 1 to ${longestReason} characters`;
  throw new ValidationError([{ field: "reason", error }]);
}

/** @throws ValidationError with each wrong field. */
export function readPage(options: unknown = {}): {
  readonly limit: number;
  readonly after: TenantPlace | undefined;
} {
  const { limit = 100, cursor } = fieldsOf(options, ["limit", "cursor"]);
  const isLimit = Number.isSafeInteger(limit) && Number(limit) >= 1 && Number(limit) <= maxLimit;
  const after = placeOf(cursor);
  refuseWrong([
    isLimit
      ? undefined
      : { field: "limit", error: `has to be a whole number from 1 to ${maxLimit}` },
    cursor === undefined || after !== undefined
      ? undefined
      : { field: "cursor", error: "has to be the cursor of a page" },
  ]);
  return { limit: Number(limit), after };
}

export function cursorOf({ timeZone, tenantId }: TenantPlace): string {
  return Buffer.from(JSON.stringify([timeZone, tenantId])).toString("base64url");
}

function placeOf(cursor: unknown): TenantPlace | undefined {
  if (typeof cursor !== "string" || cursor.length > 4_096) return undefined;
  try {
    const [timeZone, tenantId]: readonly unknown[] = JSON.parse(
      Buffer.from(cursor, "base64url").toString(),
    );
    return isZoneName(timeZone) && isIdentifier(tenantId) ? { timeZone, tenantId } : undefined;
  } catch {
    return undefined;
  }
}

function fieldsOf(given: unknown, known: readonly string[]): Readonly<Record<string, unknown>> {
  if (!isRecord(given))
    throw new ValidationError([{ field: "", error: `pass an object with ${known.join(", ")}` }]);
  refuseWrong(unknownFields(given, known, `known are ${known.join(", ")}`));
  return given;
}
