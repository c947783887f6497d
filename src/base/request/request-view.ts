/** HTTP request of a handler, read-only. */
export interface RequestView {
  readonly method: string;
  /** Percent-encoded as received, or again if an API Gateway HTTP API has decoded it. */
  readonly path: string;
  /** Without a prototype, names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Without a prototype. `SID` and `sid` are two cookies. */
  readonly cookies: Readonly<Record<string, string>>;
  readonly ip: string | undefined;
  /** Empty without a body, or if a middleware has parsed a form. */
  readonly rawBody: Uint8Array;
}
