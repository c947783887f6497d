/** Which header deduplicates a write: `either` is `Idempotency-Key` or `X-Request-ID`; `false` is none. */
export type OnceBy = "either" | "idempotency-key" | false;

/** Keys that a write asks for, and that may last for longer than five minutes. */
export interface RequiredKey {
  /** A request without an `Idempotency-Key` is a 400 `idempotency_key_required`; an `X-Request-ID` is not enough. */
  readonly required: true;
  /** For how long a retry gets the first answer, in seconds: 300, the default, to 604,800 (a week). */
  readonly keepSeconds?: number;
}

/** The bounds of `keepSeconds`. */
const [leastKept, mostKept] = [300, 604_800];

/** Whether a value is an {@link OnceBy}. */
export function isOnceBy(value: unknown): value is OnceBy {
  return value === "either" || value === "idempotency-key" || value === false;
}

/** What a write's `once` may be, for messages. */
export const onceForms = `"either", "idempotency-key", false or { required: true, keepSeconds: ${leastKept} to ${mostKept} }`;

/** Whether a value is what a write's `once` may be. */
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
