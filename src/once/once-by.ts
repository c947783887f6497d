/** Which header deduplicates a write: `either` is `Idempotency-Key` or `X-Request-ID`; `false` is none. */
export type OnceBy = "either" | "idempotency-key" | false;

/** Whether a value is an {@link OnceBy}. */
export function isOnceBy(value: unknown): value is OnceBy {
  return value === "either" || value === "idempotency-key" || value === false;
}
