const writes: readonly string[] = ["POST", "PUT", "PATCH", "DELETE"];
const reads: readonly string[] = ["GET", "HEAD", "OPTIONS"];

type Input = Parameters<typeof globalThis.fetch>;

/** A call, ready to be sent more than once. */
export interface IdentifiedRequest {
  readonly request: Request;
  /** Whether another attempt does the same as the first, and can send the same body. */
  readonly repeatable: boolean;
  /** What a `Request` does not keep of the call, such as options of one runtime. */
  readonly more: RequestInit;
}

/**
 * Gives a call its `X-Request-ID`, and a write its `Idempotency-Key`, unless the caller has.
 *
 * @throws TypeError where `fetch` would throw one at once, such as for a URL that is none.
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
    // Any option makes `fetch` forget the first two of a request. Clients put what a framework asks for on their own `Request`.
    more: {
      referrer,
      referrerPolicy,
      ...(input instanceof Request ? Object.fromEntries(Object.entries(input)) : {}),
      ...rest,
    },
  };
}

/** A stream is gone with the first attempt. That of a `Request` is copied. */
function isRepeatable(body: unknown): boolean {
  return !(
    typeof body === "object" &&
    body !== null &&
    (Symbol.asyncIterator in body || "getReader" in body)
  );
}

/** 128 random bits. `crypto.randomUUID` is missing in pages without TLS. */
function randomId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}
