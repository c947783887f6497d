/** Which IDs of a request make its write happen once. */
export type OnceBy = "either" | "idempotency-key" | false;

/** Whether a value is an {@link OnceBy}. */
export function isOnceBy(value: unknown): value is OnceBy {
  return value === "either" || value === "idempotency-key" || value === false;
}
