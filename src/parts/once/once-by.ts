import { isRecord } from "../../base/errors/option-table.ts";

/** Deduplication of retried writes. */
export interface OnceOptions {
  /**
   * Headers that deduplicate retries: `either` accepts `Idempotency-Key` or `X-Request-ID`. Default:
   * the server's `once.key`, which defaults to `either`, and `idempotency-key` with `required`.
   */
  readonly key?: "either" | "idempotency-key";
  /**
   * Whether a request without an `Idempotency-Key` fails with 400 `idempotency_key_required`. An
   * `X-Request-ID` is not sufficient. Default: the server's `once.required`, otherwise `false`.
   */
  readonly required?: boolean;
  /**
   * Time during which a retry gets the first answer, in seconds, from 300 to 604,800 (a week).
   * Default: the server's `once.keepSeconds`, otherwise 300.
   */
  readonly keepSeconds?: number;
}

/** Rule for deduplicating retries of a write. */
export interface OnceRule {
  readonly key: "either" | "idempotency-key" | "required";
  /** Default 300. */
  readonly keepSeconds: number | undefined;
}

export const leastKeptSeconds = 300;

/** Options of a write and of its server, merged. Returns `false` if nothing is deduplicated. */
export function onceRule(
  own: OnceOptions | false | undefined,
  server: OnceOptions | false | undefined,
): OnceRule | false {
  if (own === false || (own === undefined && server === false)) return false;
  const general = server === false ? undefined : server;
  return {
    key: (own?.required ?? general?.required) ? "required" : (own?.key ?? general?.key ?? "either"),
    keepSeconds: own?.keepSeconds ?? general?.keepSeconds,
  };
}

const mostKept = 604_800;

/** Valid forms of `once`, for error messages. */
export const onceForms = `false or { key: "either" | "idempotency-key", required, keepSeconds: ${leastKeptSeconds} to ${mostKept} }, "either" only if no key is required`;

/** @param more - further members that the options may have. */
export function isOnce(value: unknown, more: readonly string[] = []): value is OnceOptions | false {
  if (value === false) return true;
  if (!isRecord(value)) return false;
  const { key, required, keepSeconds = leastKeptSeconds, ...others } = value;
  return (
    (key === "idempotency-key" || key === undefined || (key === "either" && required !== true)) &&
    (required === undefined || typeof required === "boolean") &&
    Number.isSafeInteger(keepSeconds) &&
    Number(keepSeconds) >= leastKeptSeconds &&
    Number(keepSeconds) <= mostKept &&
    Object.keys(others).every((name) => more.includes(name))
  );
}
