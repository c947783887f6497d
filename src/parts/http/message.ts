import type { PipelineError } from "../../base/errors/errors.ts";
import type { GatewayClaims } from "../../base/identity/claims.ts";

/**
 * HTTP request that a host passes to the pipeline, with nothing decoded and nothing trusted. The
 * container creates it from a socket, the Lambda host from an event.
 */
export interface HttpRequest {
  /** Method as received: `GET`. */
  readonly method: string;
  /**
   * Percent-encoded path without the query: `/files/a%20b`. As received, or encoded again if a
   * gateway decoded it.
   */
  readonly path: string;
  /** Query as received, without `?`; `""` if there is no query. */
  readonly query: string;
  /** Names in lower case. Repeated headers are joined as RFC 9110 specifies. */
  readonly headers: Readonly<Record<string, string>>;
  /** Address of the peer, if the host knows it. */
  readonly ip: string | undefined;
  /** Whether the request arrived over TLS. Absent if the host cannot know. */
  readonly isEncrypted?: boolean;
  /** Aborts when the client disconnects; `undefined` if the host cannot detect this. */
  readonly signal: AbortSignal | undefined;
  /** Time of receipt, in milliseconds since the epoch. Absent if the host does not record it. */
  readonly nowMs?: number | undefined;
  /**
   * End of the process, in milliseconds since the epoch. Absent if the host does not end the
   * process at a fixed time.
   */
  readonly deadlineMs?: number | undefined;
  /** @throws FrameworkError `response_too_large` if the transport does not accept the response. */
  assertFits?: ((response: Pick<HttpResponse, "status" | "headers" | "body">) => void) | undefined;
  /** Claims that an API Gateway authorizer verified. Only the Lambda host sets them. */
  readonly gatewayClaims: GatewayClaims | undefined;
  /** Request ID, set by the pipeline. The host needs it to report a request that it cuts off. */
  requestId?: string;
  /** Reason why the host cannot accept the request. The pipeline responds with it. */
  readonly refusal?: PipelineError | undefined;
  /**
   * Reads the whole body, once. Returns it synchronously if it has already arrived.
   *
   * @throws FrameworkError `payload_too_large` above `limitBytes`, without reading on.
   */
  readBody(limitBytes: number): Uint8Array | Promise<Uint8Array>;
  /**
   * Returns the form that a middleware has parsed from the body; `undefined` if no middleware has.
   * The bytes of the body are no longer available then.
   *
   * @throws FrameworkError `payload_too_large` above `limitBytes`.
   */
  readForm?: ((limitBytes: number) => Record<string, unknown> | undefined) | undefined;
}

/** HTTP response of the pipeline. The hosts send it. */
export interface HttpResponse {
  readonly status: number;
  /** Names in lower case, without `set-cookie`. */
  readonly headers: Record<string, string>;
  /** Values of `set-cookie`, one header each. */
  readonly cookies: readonly string[];
  /**
   * `undefined` if there is no body. Only a query's body can be a stream. Its chunks are bytes when
   * it is sent.
   */
  readonly body: string | Uint8Array | ReadableStream<Uint8Array> | undefined;
}

/** Kind of request body that a route accepts. */
export type BodyKind = "json" | "form" | "text" | "bytes";

/** Headers that only keelson sets. Results and errors cannot set them. */
export const ownHeaders: readonly string[] = Object.freeze([
  "x-request-id",
  "x-keelson-config",
  "content-length",
  "transfer-encoding",
  "connection",
  "set-cookie",
]);
