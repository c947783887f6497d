const writes: readonly string[] = ["POST", "PUT", "PATCH", "DELETE"];
const reads: readonly string[] = ["GET", "HEAD", "OPTIONS"];

type Input = Parameters<typeof globalThis.fetch>;

/** A call that can be sent more than once. */
export interface IdentifiedRequest {
  readonly request: Request;
  /** Whether another attempt has the same effect as the first and can send the same body. */
  readonly repeatable: boolean;
  /** Properties of the call that a `Request` does not keep, such as runtime-specific options. */
  readonly more: RequestInit;
}

/**
 * Adds an `X-Request-ID` to a call, and an `Idempotency-Key` to a write, unless the caller has set
 * them.
 *
 * @throws TypeError if `fetch` would throw one immediately, for example for an invalid URL.
 */
export function identifiedRequest(input: Input[0], init: Input[1] = {}): IdentifiedRequest {
  const request = new Request(input, init);
  const { headers, method, referrer, referrerPolicy } = request;
  if (!headers.has("x-request-id")) headers.set("x-request-id", randomId());
  if (writes.includes(method) && !headers.has("idempotency-key"))
    headers.set("idempotency-key", randomId());
  const { body, headers: _headers, method: _method, signal: _signal, ...rest } = init;
  return {
    request,
    repeatable: (reads.includes(method) || headers.has("idempotency-key")) && isRepeatable(body),
    // If any option is set, `fetch` ignores the referrer and referrer policy of the request.
    // Clients set framework options on their own `Request`.
    more: {
      referrer,
      referrerPolicy,
      ...(input instanceof Request ? Object.fromEntries(Object.entries(input)) : {}),
      ...rest,
    },
  };
}

/**
 * Reports whether a body can be sent again. The first attempt consumes a stream. The body of a
 * `Request` is cloned.
 */
function isRepeatable(body: unknown): boolean {
  return !(
    typeof body === "object" &&
    body !== null &&
    (Symbol.asyncIterator in body || "getReader" in body)
  );
}

/** Returns 128 random bits. `crypto.randomUUID` is missing in pages without TLS. */
function randomId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}
