import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Runtime } from "../app/runtime.ts";
import type { HttpResponse } from "../http/message.ts";
import { serve } from "../http/pipeline.ts";
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

const cutUploadAfterMs = 500;

/** Makes the container's HTTP server: the same routes as in Lambda, on Node's own server. */
export function createHttpServer(runtime: Runtime, options: HttpServerOptions): HttpServer {
  const server = createServer(
    {
      keepAliveTimeout: options.keepAliveTimeoutMs ?? 65_000,
      headersTimeout: options.headersTimeoutMs ?? 10_000,
      requestTimeout: options.requestTimeoutMs ?? 60_000,
      maxHeaderSize: options.maxHeaderBytes ?? 16_384,
      connectionsCheckingInterval: 1_000, // Node looks for requests that take too long only every 30 s by default
    },
    (message, response) => void respond(runtime, message, response),
  );
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => refuse(runtime, error, socket));
  return server;
}

async function respond(runtime: Runtime, message: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const answer = await serve(runtime, httpRequest(message, response));
    if (runtime.lifecycle.state === "draining") response.setHeader("connection", "close");
    if (!message.complete) cutUpload(message, response);
    await write(response, answer, message.method === "HEAD");
  } catch (error) {
    // The response has begun, or its client is gone: it can only be cut off.
    runtime.log.warn("response.cut_off", { message: error instanceof Error ? error.message : String(error) });
    response.destroy();
  }
}

/**
 * A body that nobody reads, over the limit or of a route that is not there, may never end: Node
 * would read on and throw it away for ever. The client gets a moment to read its answer.
 */
function cutUpload(message: IncomingMessage, response: ServerResponse): void {
  response.setHeader("connection", "close");
  response.once("finish", () => {
    setTimeout(() => message.socket.destroy(), cutUploadAfterMs).unref();
  });
}

async function write(response: ServerResponse, { status, headers, cookies, body }: HttpResponse, head: boolean): Promise<void> {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  if (cookies.length > 0) response.setHeader("set-cookie", cookies);
  response.statusCode = status;
  if (body === undefined || head || typeof body === "string" || body instanceof Uint8Array) {
    response.end(head ? undefined : body);
    return;
  }
  // Safe: Node's own type of a web stream and the DOM's differ in declarations only.
  await pipeline(Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]), response);
}

/** What the parser refuses never becomes a request; it is answered in the uniform body all the same. */
function refuse(runtime: Runtime, error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const requestId = runtime.newRequestId();
  const [status, reason, message] = refusals[error.code ?? ""] ?? [400, "Bad Request", "The request is not valid HTTP"];
  const body = JSON.stringify({ error: "malformed_request", message, requestId });
  runtime.log.child({ requestId }).warn("request.failed", { error: "malformed_request", status, message, code: error.code });
  socket.end(
    `HTTP/1.1 ${status} ${reason}\r\ncontent-type: application/json; charset=utf-8\r\nx-request-id: ${requestId}\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}

const refusals: Readonly<Record<string, readonly [number, string, string]>> = {
  HPE_HEADER_OVERFLOW: [431, "Request Header Fields Too Large", "The headers of the request are too large"],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "Request Timeout", "The request took too long to arrive"],
};
