/**
 * Header that deduplicates a write. `either` accepts `Idempotency-Key` or `X-Request-ID`; `false`
 * turns deduplication off.
 */
export type OnceBy = "either" | "idempotency-key" | false;

/**
 * `once` option of a write that requires an `Idempotency-Key` and may retain its answer for longer
 * than five minutes.
 */
export interface RequiredKey {
  /**
   * A request without an `Idempotency-Key` fails with 400 `idempotency_key_required`. An
   * `X-Request-ID` is not sufficient.
   */
  readonly required: true;
  /**
   * Time during which a retry gets the first answer, in seconds, from 300 to 604,800 (a week).
   * Default 300.
   */
  readonly keepSeconds?: number;
}

const [leastKept, mostKept] = [300, 604_800];

export function isOnceBy(value: unknown): value is OnceBy {
  return value === "either" || value === "idempotency-key" || value === false;
}

/** Valid forms of a write's `once`, for error messages. */
export const onceForms = `"either", "idempotency-key", false or { required: true, keepSeconds: ${leastKept} to ${mostKept} }`;

export function isWriteOnce(value: unknown): value is OnceBy | RequiredKey {
  if (isOnceBy(value)) return true;
  if (typeof value !== "object" || value === null) return false;
  const {
    required,
    keepSeconds = leastKept,
    ...others
  } = value as Readonly<Record<string, unknown>>; // safe: any member of an object may be read
  const isKept =
    Number.isSafeInteger(keepSeconds) &&
    Number(keepSeconds) >= leastKept &&
    Number(keepSeconds) <= mostKept;
  return required === true && isKept && Object.keys(others).length === 0;
}
