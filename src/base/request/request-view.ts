/** The HTTP request that a handler serves. All members are read-only. */
export interface RequestView {
  readonly method: string;
  /** Percent-encoded path, as received. Encoded again if an API Gateway HTTP API has decoded it. */
  readonly path: string;
  /** Object without a prototype. Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Object without a prototype. Names keep their case: `SID` and `sid` are two cookies. */
  readonly cookies: Readonly<Record<string, string>>;
  readonly ip: string | undefined;
  /** Raw bytes of the body. Empty without a body, or if a middleware has parsed a form. */
  readonly rawBody: Uint8Array;
}
