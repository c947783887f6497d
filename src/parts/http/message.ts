import type { PipelineError } from "../../base/errors/errors.ts";
import type { GatewayClaims } from "../../base/identity/claims.ts";

/**
 * An HTTP request as the hosts hand it to the pipeline: nothing decoded, nothing trusted.
 * The container makes it from a socket, the Lambda host from an event.
 */
export interface HttpRequest {
  /** The method as received: `GET`. */
  readonly method: string;
  /** The path, percent-encoded, without query: `/files/a%20b`. As received, or encoded again where a gateway decoded it. */
  readonly path: string;
  /** The query as received, without `?`; `""` where there is none. */
  readonly query: string;
  /** Names in lower case, repeated ones joined as RFC 9110 says. */
  readonly headers: Readonly<Record<string, string>>;
  /** The address of the peer, where the host knows it. */
  readonly ip: string | undefined;
  /** Whether it came over TLS; absent where the host cannot know. */
  readonly isEncrypted?: boolean;
  /** Aborts when the client is gone; `undefined` where the host cannot know. */
  readonly signal: AbortSignal | undefined;
  /** When it was received, in milliseconds since the epoch; absent where the host does not note it. */
  readonly nowMs?: number | undefined;
  /** When the process will be gone, in milliseconds since the epoch; absent where the host does not end by itself. */
  readonly deadlineMs?: number | undefined;
  /** @throws FrameworkError `response_too_large` where the transport would not take the response. */
  assertFits?: ((response: Pick<HttpResponse, "status" | "headers" | "body">) => void) | undefined;
  /** Claims that an API Gateway authorizer verified; only ever set by the Lambda host. */
  readonly gatewayClaims: GatewayClaims | undefined;
  /** Its ID, noted by the pipeline for the host, which has to name it where it is cut off. */
  requestId?: string;
  /** Why the host cannot take the request: the pipeline answers with it. */
  readonly refusal?: PipelineError | undefined;
  /**
   * Reads the whole body, once; at once where it is there already.
   *
   * @throws FrameworkError `payload_too_large` above `limitBytes`, without reading on.
   */
  readBody(limitBytes: number): Uint8Array | Promise<Uint8Array>;
  /**
   * Reads the form that a middleware has parsed the body to; `undefined` where none has. Its bytes are gone then.
   *
   * @throws FrameworkError `payload_too_large` above `limitBytes`.
   */
  readForm?: ((limitBytes: number) => Record<string, unknown> | undefined) | undefined;
}

/** What the pipeline answers; the hosts write it out. */
export interface HttpResponse {
  readonly status: number;
  /** Names in lower case; `set-cookie` is never among them. */
  readonly headers: Record<string, string>;
  /** Values of `set-cookie`, one header each. */
  readonly cookies: readonly string[];
  /** `undefined`: no body at all. A stream only where a query replies with one; as it is sent, its chunks are bytes. */
  readonly body: string | Uint8Array | ReadableStream<Uint8Array> | undefined;
}

/** The kind of request body that a route takes. */
export type BodyKind = "json" | "form" | "text" | "bytes";
