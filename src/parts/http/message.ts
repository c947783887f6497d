import type { PipelineError } from "../../base/errors/errors.ts";
import type { GatewayClaims } from "../../base/identity/authenticator.ts";

/**
 * HTTP request that a host passes to the pipeline, before anything is decoded or validated. The
 * container creates it from a socket, the Lambda host from an event.
 */
export interface HttpRequest {
  /** Method as received. */
  readonly method: string;
  /**
   * Percent-encoded path without the query: `/files/a%20b`. As received, or encoded again if a
   * gateway decoded it.
   */
  readonly path: string;
  /** Query as received, without `?`; `""` if there is no query. */
  readonly query: string;
  /** Headers, with names in lower case. Repeated headers are joined as RFC 9110 specifies. */
  readonly headers: Readonly<Record<string, string>>;
  /** Address of the peer, if the host knows it. */
  readonly ip: string | undefined;
  /** Whether the request arrived over TLS. Absent if the host cannot know. */
  readonly isEncrypted?: boolean;
  /** Aborts when the client disconnects; `undefined` if the host cannot detect this. */
  readonly signal: AbortSignal | undefined;
  /** Time of receipt, in milliseconds since the epoch. Absent if the host does not record it. */
  readonly nowMs?: number | undefined;
  /** Time when the process ends, in milliseconds since the epoch. Absent without a fixed end. */
  readonly deadlineMs?: number | undefined;
  /**
   * Checks that the transport accepts a response. @throws FrameworkError `response_too_large` if
   * not.
   */
  assertFits?: ((response: Pick<HttpResponse, "status" | "headers" | "body">) => void) | undefined;
  /** Claims that an API Gateway authorizer verified. Only the Lambda host sets them. */
  readonly gatewayClaims: GatewayClaims | undefined;
  /** ID that the pipeline sets. The host needs it to report a request that it cuts off. */
  requestId?: string;
  /** Error that the pipeline answers with, because the host cannot accept the request. */
  readonly refusal?: PipelineError | undefined;
  /**
   * Reads the whole body, once. A body that has already arrived is returned synchronously.
   *
   * @throws FrameworkError `payload_too_large` above `limitBytes`, without reading the rest.
   */
  readBody(limitBytes: number): Uint8Array | Promise<Uint8Array>;
  /**
   * Returns the form if a middleware has parsed one from the body, whose bytes are then no longer
   * available.
   *
   * @throws FrameworkError `payload_too_large` above `limitBytes`.
   */
  readForm?: ((limitBytes: number) => Record<string, unknown> | undefined) | undefined;
}

export interface HttpResponse {
  readonly status: number;
  /** Headers without `set-cookie`, with names in lower case. */
  readonly headers: Record<string, string>;
  /** Values of `set-cookie`, one header each. */
  readonly cookies: readonly string[];
  /**
   * Body, if there is one. Only a query's body can be a stream, whose chunks are bytes when sent.
   */
  readonly body: string | Uint8Array | ReadableStream<Uint8Array> | undefined;
}

/** Kind of request body that a route accepts. */
export type BodyKind = "json" | "form" | "text" | "bytes";

/** Headers that results and errors cannot set, because only keelson sets them. */
export const ownHeaders: readonly string[] = Object.freeze([
  "x-request-id",
  "x-keelson-config",
  "content-length",
  "transfer-encoding",
  "connection",
  "set-cookie",
]);
