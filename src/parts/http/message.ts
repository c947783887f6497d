import type { PipelineError } from "../../base/errors/errors.ts";
import type { GatewayClaims } from "../../base/identity/authenticator.ts";
import type { RequestView } from "../../base/request/request-view.ts";
import { parseCookies } from "./request-cookies.ts";

/** Request that a host passes to the pipeline, before anything is decoded or validated. */
export interface HttpRequest {
  readonly method: string;
  /** Percent-encoded: `/files/a%20b`. As received, or encoded again if a gateway decoded it. */
  readonly path: string;
  readonly query: string;
  /** Names in lower case. Repeated headers are joined as RFC 9110 specifies. */
  readonly headers: Readonly<Record<string, string>>;
  readonly ip: string | undefined;
  /** Whether the request arrived over TLS, if the host can know. */
  readonly isEncrypted?: boolean;
  /** Aborts when the client disconnects, if the host can detect this. */
  readonly signal: AbortSignal | undefined;
  /** Time of receipt, in milliseconds since the epoch, if the host records it. */
  readonly nowMs?: number | undefined;
  /** Time when the process ends, in milliseconds since the epoch, if that is fixed. */
  readonly deadlineMs?: number | undefined;
  /** @throws FrameworkError `response_too_large` for a response that the transport refuses. */
  assertFits?: ((response: Pick<HttpResponse, "status" | "headers" | "body">) => void) | undefined;
  readonly gatewayClaims: GatewayClaims | undefined;
  /** IDs of the platform that the request's log lines contain. */
  readonly logFields?: Readonly<Record<string, string>> | undefined;
  /** Set by the pipeline, so that the host can report a request that it cuts off. */
  requestId?: string;
  /** Answer of the pipeline, because the host cannot accept the request. */
  readonly refusal?: PipelineError | undefined;
  /**
   * Reads the body, once, and synchronously if it has arrived. @throws FrameworkError
   * `payload_too_large` above `limitBytes`, without reading the rest.
   */
  readBody(limitBytes: number): Uint8Array | Promise<Uint8Array>;
  /** Form that a middleware has parsed from the body, whose bytes are then gone. */
  readForm?: (limitBytes: number) => Promise<Readonly<Record<string, unknown>> | undefined>;
}

export function requestView(
  { method, path, headers, ip }: HttpRequest,
  rawBody: Uint8Array,
): RequestView {
  let cookies: Readonly<Record<string, string>> | undefined;
  return Object.freeze({
    method,
    path,
    headers: Object.freeze(Object.assign(Object.create(null), headers)),
    get cookies() {
      cookies ??= Object.freeze(parseCookies(headers["cookie"]));
      return cookies;
    },
    get lastEventId() {
      return lastEventId(headers["last-event-id"]);
    },
    ip,
    rawBody,
  });
}

/** Longest ID that a client may send back, in characters. */
const longestId = 1_024;

/** Clients send the ID in UTF-8, which a container reads as Latin-1. */
function lastEventId(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  const decoded = Buffer.from(header, "latin1").toString("utf8");
  const id = decoded.includes("\ufffd") || /[^\0-\xff]/.test(header) ? header : decoded;
  return id.length > longestId ? undefined : id;
}

export interface HttpResponse {
  readonly status: number;
  /** Headers without `set-cookie`, with names in lower case. */
  readonly headers: Record<string, string>;
  /** Values of `set-cookie`, one header each. */
  readonly cookies: readonly string[];
  /** Only a query's body can be a stream, whose chunks are bytes when sent. */
  readonly body: string | Uint8Array | ReadableStream<Uint8Array> | undefined;
}

/**
 * Kind of request body that a route accepts. The members of `json`, an object, and of `form` and
 * `multipart` become members of the input, files as `File`; `value`, any JSON, and `text` and
 * `bytes` become its member `body`.
 */
export type BodyKind = "json" | "value" | "form" | "multipart" | "text" | "bytes";
