import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import { type Duplex, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Runtime } from "../app/runtime.ts";
import { adoptRequestId } from "../context/request-id.ts";
import { describeError } from "../errors/describe.ts";
import { FrameworkError, PipelineError } from "../errors/errors.ts";
import type { HttpResponse } from "../http/message.ts";
import { serve } from "../http/pipeline.ts";
import type { Logger } from "../log/logger.ts";
import { type Connections, followConnections } from "./connections.ts";
import { httpRequest } from "./http-request.ts";

/** Times and sizes of the container's HTTP server. */
export interface HttpServerOptions {
  /** How long an idle connection is kept: longer than a balancer's idle timeout. Default 65,000. */
  readonly keepAliveTimeoutMs?: number;
  /** How long the headers of a request may take. Default 10,000. */
  readonly headersTimeoutMs?: number;
  /** How long a whole request may take to arrive. Default 60,000. */
  readonly requestTimeoutMs?: number;
  /** The largest head of a request in bytes. Default 16 KiB. */
  readonly maxHeaderBytes?: number;
}

/** The container's HTTP server, and its connections. */
export interface ContainerServer {
  readonly http: HttpServer;
  readonly connections: Connections;
}

/** How long a client gets to read an answer before a connection that is of no more use is cut. */
const cutAfterMs = 500;

/** Makes the container's HTTP server: the same routes as in Lambda, on Node's own server. */
export function createHttpServer(runtime: Runtime, options: HttpServerOptions): ContainerServer {
  const http = createServer({
    keepAliveTimeout: options.keepAliveTimeoutMs ?? 65_000,
    headersTimeout: options.headersTimeoutMs ?? 10_000,
    requestTimeout: options.requestTimeoutMs ?? 60_000,
    maxHeaderSize: options.maxHeaderBytes ?? 16_384,
    connectionsCheckingInterval: 1_000, // Node looks for requests that take too long only every 30 s by default
    requireHostHeader: false, // Node would answer by itself, without a request ID
  });
  const connections = followConnections(http);
  const take = (message: IncomingMessage, response: ServerResponse, refusal?: PipelineError) =>
    respond(runtime, connections, message, response, refusal);
  http.on("request", (message, response) => void take(message, response, missingHost(message)));
  http.on("checkExpectation", (message, response) => {
    void take(
      message,
      response,
      new PipelineError("The Expect header asks for what is not there", 417, { code: "malformed_request" }),
    );
  });
  http.on("connect", (message, socket) => {
    const { requestId } = adoptRequestId(message.headers["x-request-id"]?.toString(), runtime.newRequestId);
    turnAway(runtime, socket, requestId, new FrameworkError("method_not_allowed", "Method not allowed"));
  });
  http.on("clientError", (error: NodeJS.ErrnoException, socket) => refuse(runtime, connections, error, socket));
  return { http, connections };
}

function missingHost({ httpVersion, headers }: IncomingMessage): PipelineError | undefined {
  if (httpVersion !== "1.1" || headers.host !== undefined) return undefined;
  return new FrameworkError("malformed_request", "The request has no Host header");
}

async function respond(
  runtime: Runtime,
  connections: Connections,
  message: IncomingMessage,
  response: ServerResponse,
  refusal: PipelineError | undefined,
): Promise<void> {
  const { socket } = message;
  const connection = connections.of(socket);
  connection.isUsed = true;
  connection.answering += 1;
  response.on("close", () => {
    connection.requests.delete(request);
    connection.answering -= 1;
    if (connection.isBroken && connection.answering === 0) socket.destroySoon();
  });
  const request = httpRequest(message, response, connection, refusal);
  connection.requests.add(request);
  await serve(runtime, request, async (answer, log) => {
    if (runtime.lifecycle.draining.aborted || connection.isBroken) response.setHeader("connection", "close");
    if (!message.complete) cutUpload(socket, response);
    try {
      await write(response, answer, message.method === "HEAD");
    } catch (error) {
      reportCut(log, error);
      response.destroy();
    }
  });
}

/**
 * A body that nobody reads, over the limit or of a route that is not there, may never end: Node
 * would read on and throw it away for ever. The client gets a moment to read its answer.
 */
function cutUpload(socket: Duplex, response: ServerResponse): void {
  response.setHeader("connection", "close");
  response.once("finish", () => cutLater(socket));
}

function cutLater(socket: Duplex): void {
  setTimeout(() => socket.destroy(), cutAfterMs).unref();
}

async function write(response: ServerResponse, { status, headers, cookies, body }: HttpResponse, head: boolean): Promise<void> {
  // At once, not header by header: with a call for each, Node keeps a table of them.
  response.writeHead(status, cookies.length > 0 ? { ...headers, "set-cookie": [...cookies] } : headers);
  if (body === undefined || head || typeof body === "string" || body instanceof Uint8Array) {
    response.end(head ? undefined : body);
    return;
  }
  // Safe: Node's own type of a web stream and the DOM's differ in declarations only.
  await pipeline(Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]), response);
}

/** A response that has begun can only be cut off; a client that left is no error. */
function reportCut(log: Logger, error: unknown): void {
  const isClientGone = error instanceof Error && "code" in error && error.code === "ERR_STREAM_PREMATURE_CLOSE";
  if (isClientGone) log.warn("request.aborted");
  else log.error("response.cut_off", describeError(error, { requestId: "", environment: "production" }).log.data);
}

/**
 * What the parser refuses. Of a request that is known already the pipeline answers; into an
 * answer that is under way nothing may be written; else it is turned away in the uniform body.
 */
function refuse(runtime: Runtime, connections: Connections, error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const connection = connections.of(socket);
  const [status, message] = refusals[error.code ?? ""] ?? [400, "The request is not valid HTTP"];
  const refusal = new PipelineError(message, status, { code: "malformed_request", cause: error });
  connection.isBroken = true;
  if (connection.failBody !== undefined) connection.failBody(refusal);
  else if (connection.answering === 0) turnAway(runtime, socket, runtime.newRequestId(), refusal);
}

const refusals: Readonly<Record<string, readonly [number, string]>> = {
  HPE_HEADER_OVERFLOW: [431, "The headers of the request are too large"],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "The request took too long to arrive"],
};

/** Answers on a bare socket: there is no request to answer. */
function turnAway(runtime: Runtime, socket: Duplex, requestId: string, error: PipelineError): void {
  const { status, body, log } = describeError(error, { requestId, environment: "production" });
  const text = JSON.stringify(body);
  runtime.log.child({ requestId }).warn("request.failed", log.data);
  socket.on("error", () => socket.destroy());
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json; charset=utf-8\r\nx-request-id: ${requestId}\r\n` +
      `content-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
  );
  cutLater(socket); // a client may keep its side open for ever
}
