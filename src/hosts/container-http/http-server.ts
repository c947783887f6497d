import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { runInScope } from "../../app/runtime/scope.ts";
import { errorLog } from "../../base/errors/describe.ts";
import type { PipelineError } from "../../base/errors/errors.ts";
import { emptyHeaders } from "../../parts/http/headers.ts";
import { bodyBudget } from "./body-budget.ts";
import {
  type Connection,
  type Connections,
  cutIfSilent,
  cutStalled,
  followConnections,
  isIdle,
} from "./connections.ts";
import { createDrain, lateRequest } from "./drain.ts";
import { Exchange } from "./exchange.ts";
import {
  type HttpServerOptions,
  httpSettings,
  type Serving,
  type UpgradeHandler,
} from "./http-options.ts";
import { serveSession } from "./http2-session.ts";
import { createInFlightLimit, holdBack } from "./in-flight-limit.ts";
import { countedReport, createNodeServer } from "./node-server.ts";
import { createByteBudget } from "./receive-body.ts";
import { refusals, turnAway } from "./refusals.ts";
import { headersOf, splitTarget } from "./request-head.ts";
import { createUnreadBudget, defaultUnreadBytes } from "./unread-bytes.ts";

export type ContainerServer = ReturnType<typeof createHttpServer>;

export interface Front extends Partial<Pick<Serving, "routes" | "gate" | "isWebFunction">> {}

export function createHttpServer(
  runtime: Runtime,
  options: HttpServerOptions,
  { routes = runtime.routes, gate, isWebFunction = false }: Front = {},
) {
  const settings = httpSettings(options, isWebFunction);
  const { tls, upgrade } = settings;
  const http = createNodeServer(settings, runtime.log, (socket) => {
    serveSession(serving, connections.of(socket), socket);
  });
  const connections = followConnections(http, tls !== undefined);
  const drain = createDrain(http, connections, runtime.lifecycle.draining);
  cutStalled(http, connections, settings.writeTimeoutMs, runtime.log);
  const { options: given, registry } = runtime.server;
  const { limits } = given;
  const bodies = createByteBudget(bodyBudget(limits, [...registry.handlers.values()]));
  const limitBytes = limits?.unreadBytes ?? defaultUnreadBytes();
  const onCut = countedReport((count) =>
    runtime.log.warn("server.connections_cut", { count, unreadBytes: limitBytes }),
  );
  const onStrain = () => holdAllBack(connections);
  const unread = createUnreadBudget(limitBytes, connections.known, onStrain, onCut);
  const shared = { connections, settings, bodies, unread };
  const serving: Serving = { runtime, routes, ...shared, gate, isWebFunction };
  http.on("request", (message, response) =>
    respond(serving, message, response, refusalOfHead(message)),
  );
  http.on("checkContinue", (message, response) =>
    respond(serving, message, response, refusalOfHead(message), true),
  );
  http.on("checkExpectation", (message, response) =>
    respond(serving, message, response, refusals.expectation),
  );
  http.on("connect", (message, socket) => {
    const connection = connections.of(socket);
    if (!isFree(connection, socket)) return;
    const headers = headersOf(message);
    void runInScope(runtime, { headers, signal: undefined }, (scope) =>
      turnAway(scope, connection, socket, { headers, method: "CONNECT" }, refusals.tunnel()),
    );
  });
  if (upgrade !== undefined) {
    http.on("upgrade", (message, socket, head) =>
      takeOver(serving, upgrade, message, socket, head),
    );
  }
  http.on("clientError", (error: NodeJS.ErrnoException, socket) => refuse(serving, error, socket));
  return { http, connections, drain, bodies, unread };
}

/**
 * Returns why to refuse a request that Node accepts: no host, or a coding before `chunked`, which
 * Node ignores. Node's parser itself fails if `chunked` is not the last (RFC 9112, 6.3).
 */
function refusalOfHead({
  httpVersion,
  headers,
}: IncomingMessage): (() => PipelineError) | undefined {
  const { host, "transfer-encoding": coding } = headers;
  if (coding !== undefined && /,\s*chunked$/i.test(coding)) return refusals.coding;
  return httpVersion !== "1.1" || host !== undefined ? undefined : refusals.noHost;
}

function respond(
  serving: Serving,
  message: IncomingMessage,
  response: ServerResponse,
  refuse: (() => PipelineError) | undefined,
  expectsContinue = false,
): void {
  const { socket } = message;
  const connection = serving.connections.of(socket);
  if (connection.unread.isCut) return;
  if (connection.isClosing) {
    message.resume(); // the lingering close discards it
    return;
  }
  connection.inFlight ??= createInFlightLimit(socket, connection, serving.unread, () =>
    holdBack(socket),
  );
  const { inFlight } = connection;
  const exchange = new Exchange(
    serving,
    connection,
    inFlight,
    message,
    response,
    refuse,
    expectsContinue,
  );
  connection.requests.add(exchange);
  inFlight.enter(exchange);
  response.on("close", () => exchange.leave());
}

/**
 * Pauses reading on all HTTP/1.1 connections for one event loop turn, which serves waiting requests
 * and new clients, and frees the memory of cut connections.
 */
function holdAllBack({ known }: Connections): void {
  const releases: (() => void)[] = [];
  for (const [socket, connection] of known) {
    const { session, upgraded, inFlight } = connection;
    if ((session ?? upgraded) !== undefined || inFlight?.isHolding || socket.destroyed) continue;
    const release = holdBack(socket as Socket); // safe: a server's sockets are network sockets
    releases.push(() => release(!connection.inFlight?.isHolding));
  }
  // The outer callback still runs in this turn.
  setImmediate(() =>
    setImmediate(() => {
      for (const release of releases) release();
    }),
  );
}

/**
 * Refuses a request that the parser rejects: fails a running read of its body, and the pipeline
 * answers; without requests, answers on the socket; otherwise, pending responses use the socket, so
 * only a later read of the body fails.
 */
function refuse(
  { runtime, connections }: Serving,
  error: NodeJS.ErrnoException,
  socket: Duplex,
): void {
  const connection = connections.of(socket);
  const hasNone = connection.requests.size === 0;
  // A client that has not sent any data does not get a response.
  if (error.code === lateRequest && hasNone && isIdle(connection, socket)) {
    cutIfSilent(connection, socket);
    return;
  }
  const isAnswered = (connection.isClosing || connection.isDiscarding) && hasNone;
  if (error.code === "ECONNRESET" || !socket.writable || isAnswered) {
    socket.destroy();
    return;
  }
  const refusal = (refusalOf[error.code ?? ""] ?? refusals.noHttp)(error);
  connection.isBroken = true;
  if (connection.failBody !== undefined) connection.failBody(refusal);
  else if (hasNone) {
    const headers = emptyHeaders(); // Node does not pass on the headers it has read
    const request = { headers, method: undefined };
    void runInScope(runtime, { headers, signal: undefined }, (scope) =>
      turnAway(scope, connection, socket, request, refusal),
    );
  } else connection.bodyFailure = refusal;
}

const refusalOf: Readonly<Record<string, (cause: unknown) => PipelineError>> = {
  HPE_HEADER_OVERFLOW: refusals.headersTooLarge,
  [lateRequest]: refusals.late,
};

/** Pending responses of a connection that Node has detached are written, and then it closes. */
function isFree(connection: Connection, socket: Duplex): boolean {
  // Node has removed its listeners, and an unhandled error would end the process.
  socket.on("error", () => socket.destroy());
  if (connection.requests.size === 0) return !connection.isClosing;
  connection.isBroken = true;
  socket.resume(); // otherwise a disconnect of the client goes unnoticed
  return false;
}

/** A draining process refuses an upgrade, because the connection would soon be cut. */
function takeOver(
  { runtime, connections }: Serving,
  upgrade: UpgradeHandler,
  message: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): void {
  const connection = connections.of(socket);
  if (!isFree(connection, socket)) return;
  const headers = headersOf(message);
  void runInScope(runtime, { headers, signal: undefined }, async (scope) => {
    const refusal = runtime.lifecycle.draining.aborted
      ? refusals.shuttingDown()
      : (refusalOfHead(message)?.() ?? runtime.refusalOfHeaders(headers));
    if (refusal !== undefined)
      return turnAway(scope, connection, socket, { headers, method: message.method }, refusal);
    // Otherwise, a handler that does not end the socket would keep it open.
    socket.allowHalfOpen = false;
    const draining = new AbortController();
    connection.upgraded = {
      requestId: scope.requestId,
      path: splitTarget(message.url as string).path,
      draining,
    }; // safe: a server's requests have a URL
    try {
      await upgrade(message, socket, head, draining.signal);
    } catch (error) {
      scope.log.error("upgrade.failed", errorLog(error).data);
      socket.destroy();
    }
  });
}
