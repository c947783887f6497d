import { type FieldError, FrameworkError, ValidationError } from "../../base/errors/errors.ts";
import type { LogLevel } from "../../base/log/logger.ts";
import { renaming } from "../../base/log/record-names.ts";
import type { Clock } from "../../base/process/clock.ts";
import { forgetOldest } from "../../base/process/forget-oldest.ts";
import type { RequestView } from "../../base/request/request-view.ts";
import { defined } from "../../base/types/defined.ts";
import { reply } from "../../parts/http/reply.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import { clientLogRoute } from "./own-routes.ts";

const maxRecords = 100;
/** Rate limits per user, of records and of body bytes: the burst, and the refill per second. */
const rate = { burst: 500, perSecond: 10 };
const byteRate = { burst: 1_048_576, perSecond: 16_384 };
const levels: readonly unknown[] = ["info", "warn", "error", "debug"] satisfies readonly LogLevel[];

interface ClientRecord {
  readonly level: LogLevel;
  readonly msg: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * Creates the handler of `POST /log` (specification 4.2), which logs one or more records from a
 * browser under the caller's identity. Accepts all or none: 202 with their number, 422 with the
 * invalid fields, or 429 if a user sends too many records or bytes.
 */
export function clientLogHandler(clock: Clock): HandlerDeclaration {
  const limit = createRateLimit([rate, byteRate], clock);
  return {
    ...clientLogRoute,
    run: (ctx, input) => {
      const records = recordsOf(input);
      const { user, log } = ctx;
      const who = JSON.stringify([user.tenantId, user.id]);
      const { rawBody } = ctx.request as RequestView; // safe: only a route calls this handler
      const bytes = Math.min(byteRate.burst, rawBody.byteLength);
      const waitSeconds = limit(who, records.length, bytes);
      if (waitSeconds > 0) {
        throw new FrameworkError("too_many_requests", "Too many log records; send them later", {
          headers: { "retry-after": String(waitSeconds) },
        });
      }
      // `source` is logged as context, which comes first, so that a record's fields cannot truncate
      // or rename it. Alarms exclude lines with `source`.
      const clientLog = log.child({ source: "client" });
      for (const { level, msg, data } of records) clientLog[level](msg, data);
      return reply({ accepted: records.length }, { status: 202 });
    },
  };
}

/** Returns the records of a request. @throws ValidationError with the invalid fields. */
function recordsOf(input: unknown): readonly ClientRecord[] {
  const { body } = input as { readonly body?: unknown }; // safe cast: the input of a route is an object
  const batch = Array.isArray(body) ? body : undefined;
  const fields: FieldError[] = [];
  if (batch !== undefined && batch.length > maxRecords) {
    const error = `has ${batch.length} records, more than ${maxRecords}`;
    throw new ValidationError([{ field: "body", error }]);
  }
  const records = batch?.map((entry: unknown, index) => recordOf(entry, `${index}.`, fields)) ?? [
    recordOf(body, "", fields),
  ];
  if (fields.length > 0) throw new ValidationError(fields);
  return records;
}

/** Validates one record. Renames its `requestId`, so that it does not replace the server's. */
function recordOf(entry: unknown, path: string, fields: FieldError[]): ClientRecord {
  const given =
    typeof entry === "object" && entry !== null ? (entry as Readonly<Record<string, unknown>>) : {};
  const { level, msg, requestId, ...data } = given;
  const added = defined({ clientRequestId: requestId });
  const nameOf = renaming("data", Object.keys(data), (name) => Object.hasOwn(added, name));
  if (!levels.includes(level))
    fields.push({ field: `${path}level`, error: "must be info, warn, error or debug" });
  if (typeof msg !== "string") fields.push({ field: `${path}msg`, error: "must be a string" });
  return {
    // Safe casts: if a type is wrong, the caller rejects the record with the fields.
    level: level as LogLevel,
    msg: msg as string,
    data: {
      ...Object.fromEntries(Object.entries(data).map(([name, value]) => [nameOf(name), value])),
      ...added,
    },
  };
}

/** Maximum number of keys. Beyond it, the tenth that has been idle longest starts over. */
const maxKeys = 10_000;

/** Tokens of a bucket: the most that it holds, and the refill per second. */
interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

/**
 * Creates token buckets by key, one for each rate. The returned function takes a count of each and
 * returns 0. If too few of any are left, it does not take any and returns the seconds until there
 * are enough.
 */
export function createRateLimit(
  rates: readonly Rate[],
  clock: Clock,
): (key: string, ...counts: readonly number[]) => number {
  const buckets = new Map<string, { readonly left: readonly number[]; readonly atMs: number }>();
  const full = { left: rates.map(({ burst }) => burst), atMs: 0 };
  return (key, ...counts) => {
    const nowMs = clock.now();
    const known = buckets.get(key) ?? full;
    const elapsedSeconds = Math.max(0, nowMs - known.atMs) / 1000;
    const taken = rates.map(({ burst, perSecond }, index) => {
      // Safe casts: every rate has a bucket and a count.
      const left = Math.min(burst, (known.left[index] as number) + elapsedSeconds * perSecond);
      const rest = left - (counts[index] as number);
      return { left, rest, waitSeconds: rest < 0 ? Math.ceil(-rest / perSecond) : 0 };
    });
    const waitSeconds = Math.max(...taken.map((one) => one.waitSeconds));
    const left = taken.map((one) => (waitSeconds > 0 ? one.left : one.rest));
    buckets.delete(key); // moves the key to the end of the eviction order
    buckets.set(key, { left, atMs: nowMs });
    forgetOldest(buckets, maxKeys);
    return waitSeconds;
  };
}
