/** HTTP request of a handler, read-only. */
export interface RequestView {
  /** HTTP method, in upper case. */
  readonly method: string;
  /** Path, percent-encoded as received, or again if an API Gateway HTTP API has decoded it. See `docs/lambda.md#paths`. */
  readonly path: string;
  /** Headers with names in lower case. The object has no prototype. */
  readonly headers: Readonly<Record<string, string>>;
  /** Cookies with case-sensitive names. The object has no prototype. */
  readonly cookies: Readonly<Record<string, string>>;
  /**
   * ID of the last event that a client of `output: sse(…)` has received, from the header
   * `Last-Event-ID`. `undefined` at its first connection, and above 1,024 characters. See
   * `docs/streams.md#events-and-json-lines`.
   */
  readonly lastEventId: string | undefined;
  /** Address of the client. See `docs/container.md#the-clients-address`. */
  readonly ip: string | undefined;
  /** Body as received. Empty for a request without a body, or if a middleware has parsed a form. */
  readonly rawBody: Uint8Array;
}
