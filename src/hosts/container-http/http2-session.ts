import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { TLSSocket } from "node:tls";
import { type Sender, serve } from "../../app/run/pipeline.ts";
import type { RequestScope } from "../../app/runtime/scope.ts";
import type { PipelineError } from "../../base/errors/errors.ts";
import type { Logger } from "../../base/log/logger.ts";
import { addHeader, emptyHeaders, type HeaderMap } from "../../parts/http/headers.ts";
import type { HttpRequest, HttpResponse } from "../../parts/http/message.ts";
import { clientAddress } from "./client-address.ts";
import type { Connection, OpenRequest } from "./connections.ts";
import { reportSent } from "./exchange.ts";
import type { HttpSettings, Serving } from "./http-options.ts";
import {
  createInFlightLimit,
  type InFlightLimit,
  isAbandoned,
  type LimitedRequest,
  maxInFlight,
} from "./in-flight-limit.ts";
import { type HeldBytes, noBytes, receiveBody } from "./receive-body.ts";
import { refusals } from "./refusals.ts";
import { splitTarget } from "./request-head.ts";
import { reportCut, type SentBody, sendPieces, type WaitingBytes } from "./send-body.ts";

/** Time for a client to close a connection whose session has ended, in milliseconds. */
const closeMs = 5_000;

export function serveSession(serving: Serving, connection: Connection, socket: TLSSocket): void {
  const { runtime, settings, bodies, unread } = serving;
  const { performServerHandshake } = process.getBuiltinModule("node:http2");
  const session = performServerHandshake(socket, {
    // Headers up to twice the limit get a response. nghttp2 resets longer ones.
    settings: { maxConcurrentStreams: maxInFlight, maxHeaderListSize: settings.maxHeaderBytes * 2 },
  });
  connection.session = {
    retire: () => retire(connection, session),
    close: () => session.close(),
    destroy: () => session.destroy(),
  };
  // An error already ends its session or stream. Without a listener, Node would throw it.
  session.on("error", () => {});
  let isOverdue = false;
  session.setTimeout(settings.keepAliveTimeoutMs); // any data received or sent restarts it
  session.on("timeout", () => {
    isOverdue = connection.requests.size > 0;
    if (isOverdue) return;
    session.close();
    setTimeout(() => socket.destroy(), closeMs).unref();
  });
  const inFlight = createInFlightLimit(socket, connection, unread);
  session.on("stream", (stream, received, _flags, fields) => {
    stream.on("error", () => {});
    /* v8 ignore next -- Node emits a stream before its reset; no close event would follow */
    if (stream.closed) return;
    const held = bodies.hold();
    const request = streamRequest(serving, stream, received, fields, held, socket);
    respond(serving, connection, inFlight, stream, request, held);
    stream.on("close", () => {
      // The timeout passed while requests were open. A reset stream does not restart it.
      if (isOverdue && connection.requests.size === 0)
        session.setTimeout(settings.keepAliveTimeoutMs);
    });
    if (runtime.lifecycle.draining.aborted) connection.session?.retire();
  });
}

/**
 * Sends a GOAWAY, and the final one once the client has answered a ping, which shows that it
 * has read the first one (RFC 9113, 6.8). Requires a request in progress, because nghttp2 stops reading after a GOAWAY
 * without one.
 */
function retire(connection: Connection, session: ServerHttp2Session): void {
  if (connection.isClosing || session.destroyed) return;
  connection.isClosing = true;
  session.goaway(0, 2 ** 31 - 1);
  session.ping(() => session.close());
}

function respond(
  serving: Serving,
  connection: Connection,
  inFlight: InFlightLimit,
  stream: ServerHttp2Stream,
  request: StreamRequest,
  held: HeldBytes,
): void {
  connection.requests.add(request);
  const sent: SentBody = { bytes: 0, atOnce: 0 };
  const { session } = stream; // kept, because a closed stream has no session
  let isWhole = false;
  let answered: { readonly scope: RequestScope; readonly status: number } | undefined;
  const waiting: WaitingBytes = {
    hold: (bytes) => inFlight.hold(limited, bytes),
    release: (bytes) => inFlight.release(limited, bytes),
  };
  const send: Sender["send"] = async (answer, scope) => {
    const { log } = scope;
    answered = { scope, status: answer.status };
    request.log = log;
    try {
      await write(stream, request, answer, sent, waiting);
    } catch (error) {
      if (!request.isStalled) reportCut(log, error, request.signal);
      stream.close(internalError);
    }
  };
  const limited: LimitedRequest = {
    work: () => serve(serving, request, { send }),
    ended: () => {
      held.release();
      serving.connections.abandoned.delete(request);
      if (answered !== undefined)
        reportSent(answered.scope, request.method, answered.status, sent, isWhole);
    },
    left: 2,
    heldBytes: 0,
    hasLeft: false,
    isAhead: false,
  };
  inFlight.enter(limited);
  stream.on("close", () => {
    // For a request with a body, Node closes the stream before it sets `writableFinished`.
    isWhole =
      stream.rstCode === noError &&
      (stream.writableFinished || (!stream.aborted && session !== undefined && !session.destroyed));
    if (!isWhole) request.abort(connection.departure());
    connection.requests.delete(request);
    if (connection.isClosing && connection.requests.size === 0) connection.session?.close();
    inFlight.leave(limited);
    if (isAbandoned(limited)) serving.connections.abandoned.add(request);
  });
}

/** Error codes of HTTP/2 (RFC 9113, 7). */
const [noError, internalError] = [0, 2];

/** Headers that HTTP/2 forbids (RFC 9113, 8.2.2). */
const hopHeaders =
  /^(connection|keep-alive|proxy-connection|transfer-encoding|upgrade|http2-settings|te)$/;

async function write(
  stream: ServerHttp2Stream,
  request: StreamRequest,
  answer: HttpResponse,
  sent: SentBody,
  waiting: WaitingBytes,
): Promise<void> {
  if (stream.destroyed) return;
  const { status, headers, cookies, body } = answer;
  const endStream = request.method === "HEAD" || body === undefined;
  const fields = Object.fromEntries(
    Object.entries(headers).filter(([name]) => !hopHeaders.test(name)),
  );
  // Otherwise, an unread rest of the request body would hold the stream open.
  stream.once("finish", () => {
    if (!stream.endAfterHeaders && !stream.readableEnded) stream.close(noError);
  });
  stream.respond(
    { ":status": status, ...fields, ...(cookies.length > 0 ? { "set-cookie": [...cookies] } : {}) },
    { endStream },
  );
  if (endStream) return;
  request.outflow = {
    taken: () =>
      stream.writableLength > 0 ? sent.bytes + sent.atOnce - stream.writableLength : undefined,
    reset: () => stream.close(internalError),
  };
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  if (!(bytes instanceof Uint8Array)) return sendPieces(bytes, stream, pieceBytes, sent, waiting);
  waiting.hold(bytes.byteLength);
  if (bytes.byteLength <= pieceBytes) {
    sent.atOnce = bytes.byteLength;
    stream.end(bytes);
    return;
  }
  await sendPieces(bytes, stream, pieceBytes, sent);
}

/** Size of the pieces of a response, in bytes. Progress is measured by piece. */
const pieceBytes = 16_384;

type StreamRequest = HttpRequest & OpenRequest & { log?: Logger };

function streamRequest(
  { runtime, settings }: Serving,
  stream: ServerHttp2Stream,
  received: IncomingHttpHeaders,
  fields: readonly string[],
  held: HeldBytes,
  { remoteAddress }: TLSSocket,
): StreamRequest {
  const { ":method": method = "", ":path": target = "", ":authority": authority } = received;
  const { path, query } = splitTarget(target);
  const headers = headersOf(fields);
  const refusal = refusalOf(received, headers, settings);
  if (authority !== undefined) headers["host"] = authority;
  const departure = new AbortController();
  const body: Pick<Connection, "failBody"> = { failBody: undefined };
  return {
    requestId: "",
    method,
    path,
    query,
    headers,
    ip: clientAddress(remoteAddress, headers["x-forwarded-for"], settings.trustedProxies),
    isEncrypted: true,
    nowMs: runtime.observer === undefined ? undefined : runtime.clock.now(),
    signal: departure.signal,
    abort: (reason) => {
      departure.abort(reason);
      body.failBody?.(reason);
    },
    gatewayClaims: undefined, // a container does not trust claims of a gateway
    refusal,
    readBody: (limitBytes) => {
      if (stream.endAfterHeaders) return noBytes;
      if (headers["expect"] !== undefined && !stream.destroyed)
        stream.additionalHeaders({ ":status": 100 });
      const late = setTimeout(() => body.failBody?.(refusals.late()), settings.requestTimeoutMs);
      return receiveBody(stream, limitBytes, body, held).finally(() => clearTimeout(late));
    },
  };
}

/** Reads a flat list of names and values: Node's own object drops repetitions of some fields. */
function headersOf(fields: readonly string[]): HeaderMap {
  const headers = emptyHeaders();
  let name = "";
  for (const [index, text] of fields.entries()) {
    if (index % 2 === 0) name = text;
    else if (!name.startsWith(":")) addHeader(headers, name, text);
  }
  return headers;
}

function refusalOf(
  received: IncomingHttpHeaders,
  { expect, host }: Readonly<HeaderMap>,
  { maxHeaderBytes }: HttpSettings,
): PipelineError | undefined {
  const bytes = Object.entries(received).reduce(
    (sum, [name, value]) => sum + name.length + String(value).length + 32,
    0,
  );
  if (bytes > maxHeaderBytes) return refusals.headersTooLarge();
  if (received[":method"] === "CONNECT") return refusals.tunnel();
  const { ":authority": authority = host } = received;
  if (host !== undefined && hostOf(host) !== hostOf(String(authority))) return refusals.twoHosts();
  return expect === undefined || /^100-continue$/i.test(expect)
    ? undefined
    : refusals.expectation();
}

function hostOf(authority: string): string {
  return authority.toLowerCase().replace(/:443$/, "");
}
