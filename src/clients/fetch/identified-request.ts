const writes: readonly string[] = ["POST", "PUT", "PATCH", "DELETE"];
const reads: readonly string[] = ["GET", "HEAD", "OPTIONS"];

type Input = Parameters<typeof globalThis.fetch>;

interface IdentifiedRequest {
  readonly request: Request;
  /** Whether a second attempt has no further effect and the body can be sent again. */
  readonly repeatable: boolean;
  /** Properties of the call that a `Request` drops, such as a runtime's own options. */
  readonly more: RequestInit;
}

/**
 * Adds an `X-Request-ID`, and an `Idempotency-Key` to a write, if they are missing.
 * @throws TypeError like `fetch`, for example for an invalid URL.
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
    // If given any option, `fetch` ignores the request's referrer and policy, so both are repeated.
    // Clients set options of frameworks as properties of their `Request`, which are copied.
    more: {
      referrer,
      referrerPolicy,
      ...(input instanceof Request ? Object.fromEntries(Object.entries(input)) : {}),
      ...rest,
    },
  };
}

/** Whether a body can be sent again, unlike a stream. The body of a `Request` is cloned. */
function isRepeatable(body: unknown): boolean {
  return !(
    typeof body === "object" &&
    body !== null &&
    (Symbol.asyncIterator in body || "getReader" in body)
  );
}

/** Returns 128 random bits. Pages without TLS lack `crypto.randomUUID`. */
function randomId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}
