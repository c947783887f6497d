import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { TLSSocket } from "node:tls";
import { type Sender, serve } from "../../app/run/pipeline.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import type { RequestScope } from "../../app/runtime/scope.ts";
import type { PipelineError } from "../../base/errors/errors.ts";
import type { Logger } from "../../base/log/logger.ts";
import { addHeader, emptyHeaders, type HeaderMap } from "../../parts/http/headers.ts";
import type { HttpRequest, HttpResponse } from "../../parts/http/message.ts";
import { type SentBody, sendPieces, sentBytes, type WaitingBytes } from "./body-pieces.ts";
import { type HeldBytes, holdBytes } from "./byte-budget.ts";
import type { Connection, OpenRequest, Outflow } from "./connections.ts";
import type { HttpSettings } from "./http-options.ts";
import { noBytes, splitTarget } from "./http-request.ts";
import {
  createInFlightLimit,
  type InFlightLimit,
  type LimitedRequest,
  maxInFlight,
} from "./in-flight-limit.ts";
import { type BodyHolder, receiveBody } from "./receive-body.ts";
import { refusals } from "./refusals.ts";
import { reportCut } from "./report-cut.ts";
import type { Serving } from "./serving.ts";

/** A request of HTTP/2. */
interface StreamRequest extends HttpRequest, OpenRequest {
  requestId: string;
  readonly signal: AbortSignal;
  log?: Logger;
}

/** How long a client has to close a connection whose session has ended. */
const closeMs = 5_000;

/** Serves HTTP/2 over a connection: each of its streams is a request. */
export function serveSession(serving: Serving, connection: Connection, socket: TLSSocket): void {
  const { runtime, settings, bodies, unread } = serving;
  const { remoteAddress } = socket;
  const { performServerHandshake } = process.getBuiltinModule("node:http2");
  const session = performServerHandshake(socket, {
    // Up to twice the limit is read, to be answered; what is larger still is reset.
    settings: { maxConcurrentStreams: maxInFlight, maxHeaderListSize: settings.maxHeaderBytes * 2 },
  });
  connection.session = {
    retire: () => retire(connection, session),
    close: () => session.close(),
    destroy: () => session.destroy(),
  };
  // What is wrong with a connection ends it, and what is wrong with a stream its request.
  session.on("error", () => {});
  let isOverdue = false;
  session.setTimeout(settings.keepAliveTimeoutMs); // begins anew with whatever comes or is sent
  session.on("timeout", () => {
    isOverdue = connection.requests.size > 0;
    if (isOverdue) return;
    session.close();
    setTimeout(() => socket.destroy(), closeMs).unref(); // a client may keep its side open for ever
  });
  const inFlight = createInFlightLimit(socket, connection, unread);
  session.on("stream", (stream, received, _flags, fields) => {
    stream.on("error", () => {});
    /* v8 ignore next -- Node says of a stream before it reads its reset; else its end would be waited for in vain */
    if (stream.closed) return;
    const held = holdBytes(bodies);
    const nowMs = runtime.observer === undefined ? undefined : runtime.clock.now();
    const request = streamRequest(stream, received, fields, {
      remoteAddress,
      nowMs,
      settings,
      held,
    });
    respond(runtime, connection, inFlight, stream, request, held);
    stream.on("close", () => {
      // A stream that is reset sends nothing that would begin the time anew.
      if (isOverdue && connection.requests.size === 0)
        session.setTimeout(settings.keepAliveTimeoutMs);
    });
    if (runtime.lifecycle.draining.aborted) connection.session?.retire();
  });
}

/**
 * Tells a client that no further request is taken, and takes those that it had sent before it heard of it: first with
 * no stream excluded, then, when it has answered a ping and so has read that, for good (RFC 9113, 6.8). Only where a
 * request is being answered: nghttp2 reads nothing more from a session that was told so and has none.
 */
function retire(connection: Connection, session: ServerHttp2Session): void {
  if (connection.isClosing || session.destroyed) return;
  connection.isClosing = true;
  session.goaway(0, 2 ** 31 - 1);
  session.ping(() => session.close());
}

function respond(
  runtime: Runtime,
  connection: Connection,
  inFlight: InFlightLimit,
  stream: ServerHttp2Stream,
  request: StreamRequest,
  held: HeldBytes,
): void {
  connection.requests.add(request);
  const { observer } = runtime;
  const sent: SentBody = { bytes: 0, atOnce: 0 };
  const isSent = followEnd(stream);
  let isWhole = false;
  let answered: { readonly scope: RequestScope; readonly status: number } | undefined;
  const waiting: WaitingBytes = {
    hold: (bytes) => inFlight.hold(limited, bytes),
    release: (bytes) => inFlight.release(limited, bytes),
  };
  const send: Sender["send"] = async (answer, scope) => {
    const { log } = scope;
    const { status } = answer;
    answered = { scope, status };
    request.log = log;
    try {
      await write(stream, request, answer, sent, waiting);
    } catch (error) {
      if (!request.isStalled) reportCut(log, error, request.signal);
      stream.close(internalError);
    }
  };
  const ended = () => {
    held.release();
    if (answered === undefined || observer === undefined) return;
    const { scope, status } = answered;
    const bytes = sentBytes(sent, isWhole);
    observer.ended(scope, {
      kind: "request",
      method: request.method,
      status,
      bytes,
      isAborted: !isWhole,
    });
  };
  const limited: LimitedRequest = {
    work: () => serve(runtime, request, { send }),
    ended,
    left: 2,
    heldBytes: 0,
    hasLeft: false,
    isAhead: false,
  };
  inFlight.enter(limited);
  stream.on("close", () => {
    isWhole = isSent();
    if (!isWhole) request.abort(connection.departure());
    connection.requests.delete(request);
    if (connection.isClosing && connection.requests.size === 0) connection.session?.close();
    inFlight.leave(limited);
  });
}

/** Error codes of HTTP/2 (RFC 9113, 7). */
const noError = 0;
const internalError = 2;

/** Headers that HTTP/2 does not have (RFC 9113, 8.2.2). */
const hopHeaders = [
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
  "te",
];

/** Says of a stream that has closed whether all of its answer has left. */
function followEnd(stream: ServerHttp2Stream): () => boolean {
  const { session } = stream; // a closed stream has none
  // Of a request with a body Node closes the stream before it says that the answer's end was taken.
  return () =>
    stream.rstCode === noError &&
    (stream.writableFinished || (!stream.aborted && session !== undefined && !session.destroyed));
}

async function write(
  stream: ServerHttp2Stream,
  request: StreamRequest,
  answer: HttpResponse,
  sent: SentBody,
  waiting: WaitingBytes,
): Promise<void> {
  if (stream.destroyed) return; // the client has gone
  const { status, headers, cookies, body } = answer;
  const isHead = request.method === "HEAD";
  const fields = Object.fromEntries(
    Object.entries(headers).filter(([name]) => !hopHeaders.includes(name)),
  );
  // The rest of a body that nobody reads would hold the stream open.
  stream.once("finish", () => {
    if (!stream.endAfterHeaders && !stream.readableEnded) stream.close(noError);
  });
  stream.respond(
    { ":status": status, ...fields, ...(cookies.length > 0 ? { "set-cookie": [...cookies] } : {}) },
    { endStream: isHead || body === undefined },
  );
  if (isHead || body === undefined) return;
  request.outflow = {
    taken: () =>
      stream.writableLength > 0 ? sent.bytes + sent.atOnce - stream.writableLength : undefined,
    reset: () => stream.close(internalError),
  } satisfies Outflow;
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

/** How much of an answer is given to its stream at a time: only from one piece to the next can it be seen to be taken. */
const pieceBytes = 16_384;

/** What is known of a stream beside its headers. */
interface StreamFacts {
  readonly remoteAddress: string | undefined;
  readonly nowMs: number | undefined;
  readonly settings: HttpSettings;
  readonly held: HeldBytes;
}

/** Reads a stream as a request. */
function streamRequest(
  stream: ServerHttp2Stream,
  received: IncomingHttpHeaders,
  fields: readonly string[],
  { remoteAddress: ip, nowMs, settings, held }: StreamFacts,
): StreamRequest {
  const { ":method": method = "", ":path": target = "", ":authority": authority } = received;
  const { path, query } = splitTarget(target);
  const headers = headersOf(fields);
  const refusal = refusalOf(received, headers, settings);
  if (authority !== undefined) headers["host"] = authority;
  const departure = new AbortController();
  const body: BodyHolder = { failBody: undefined };
  return {
    requestId: "",
    method,
    path,
    query,
    headers,
    ip,
    isEncrypted: true,
    nowMs,
    signal: departure.signal,
    abort: (reason) => {
      departure.abort(reason);
      body.failBody?.(reason);
    },
    gatewayClaims: undefined, // no gateway in front of a container is believed
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

/** All header fields, given as name, value, name, value; Node's own map drops the second of those it takes for single. */
function headersOf(fields: readonly string[]): HeaderMap {
  const headers = emptyHeaders();
  let name: string | undefined;
  for (const text of fields) {
    if (name === undefined) name = text;
    else {
      if (!name.startsWith(":")) addHeader(headers, name, text);
      name = undefined;
    }
  }
  return headers;
}

/** Why a request is not taken, where the protocol itself does not see to it, as for one without a host. */
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

/** A host as it is compared with another: in lower case, without the port that https has anyway. */
function hostOf(authority: string): string {
  return authority.toLowerCase().replace(/:443$/, "");
}
