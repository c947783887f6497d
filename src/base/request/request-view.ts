/** HTTP request of a handler, read-only. */
export interface RequestView {
  readonly method: string;
  /** Path, percent-encoded as received, or again if an API Gateway HTTP API has decoded it. */
  readonly path: string;
  /** Headers with names in lower case. The object has no prototype. */
  readonly headers: Readonly<Record<string, string>>;
  /** Cookies with case-sensitive names. The object has no prototype. */
  readonly cookies: Readonly<Record<string, string>>;
  /**
   * ID of the last event that a client of `output: sse(…)` has received, from the header
   * `Last-Event-ID`. `undefined` at its first connection, and above 1,024 characters.
   */
  readonly lastEventId: string | undefined;
  readonly ip: string | undefined;
  /** Body as received. Empty for a request without a body, or if a middleware has parsed a form. */
  readonly rawBody: Uint8Array;
}
