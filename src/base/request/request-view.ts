/** The HTTP request that a handler answers. Everything in it is read-only. */
export interface RequestView {
  readonly method: string;
  /** The path, percent-encoded: as received, or encoded again if an API Gateway HTTP API has decoded it. */
  readonly path: string;
  /** Prototype-free, names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Prototype-free, names as they were sent: `SID` and `sid` are two cookies. */
  readonly cookies: Readonly<Record<string, string>>;
  readonly ip: string | undefined;
  /** The body's bytes as received; empty if there was no body, or a middleware has parsed a form. */
  readonly rawBody: Uint8Array;
}
