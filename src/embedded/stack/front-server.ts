import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { crc32 } from "node:zlib";
import { isRecord } from "../../base/errors/option-table.ts";
import {
  type AwsJsonService,
  type CallContext,
  parsed,
  ServiceError,
  serializationError,
  unknownOperation,
} from "../service/service.ts";

/** DynamoDB takes 16 MB, and does not count everything. */
const maxBodyBytes = 17 * 1024 * 1024;

const largestClockOffsetMs = 10 ** 12;

/** Other values of `Host` indicate DNS rebinding. */
const localHost = /^(127\.0\.0\.1|\[::1\]|([a-z0-9-]+\.)*localhost)(:\d{1,5})?$/i;

export function createFrontServer(
  services: readonly AwsJsonService[],
  reportFault: (error: unknown) => void,
): Server {
  const server = createServer((request, response) => {
    answer(services, request, response).catch((error: unknown) => {
      if (response.destroyed) return; // the client disconnected
      const known = error instanceof ServiceError ? error : internalError(error, reportFault);
      const { type: __type, message, status, headers, members } = known;
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      send(request, response, status, { __type, message, ...members });
    });
  });
  // Longer than the SDK keeps an idle socket: it must not write to a closing one.
  server.keepAliveTimeout = 65_000;
  return server;
}

async function answer(
  services: readonly AwsJsonService[],
  request: IncomingMessage,
  response: ServerResponse,
) {
  const onlyLocal = "The embedded stack answers to 127.0.0.1 and localhost only";
  if (!localHost.test(request.headers.host ?? ""))
    throw new ServiceError("AccessDeniedException", onlyLocal, { status: 403 });
  if (request.method === "GET") return send(request, response, 200, { status: "healthy" });
  if (request.method !== "POST")
    throw new ServiceError("UnknownOperationException", "Only POST is known here", { status: 404 });
  const target = String(request.headers["x-amz-target"] ?? "");
  const service = services.find(({ targetPrefix }) => target.startsWith(targetPrefix));
  if (service === undefined) throw unknownOperation(target);
  const input = parseInput(await readBody(request));
  const operation = target.slice(service.targetPrefix.length);
  send(request, response, 200, await service.call(operation, input, contextOf(request, response)));
}

async function readBody(request: IncomingMessage) {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Keeps the socket open for the response to a body that is too large.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += chunk.length;
    const tooLarge = `Request is larger than ${maxBodyBytes} bytes`;
    if (bytes > maxBodyBytes)
      throw new ServiceError("RequestEntityTooLargeException", tooLarge, { status: 413 });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parseInput(body: string) {
  const input = parsed(body);
  if (input === undefined) throw serializationError("The request body is not JSON");
  if (!isRecord(input))
    throw serializationError("Start of structure or map expected in the request body");
  return input;
}

function contextOf({ headers }: IncomingMessage, response: ServerResponse): CallContext {
  const hungUp = new AbortController();
  response.once("close", () => hungUp.abort());
  return {
    nowMs: Date.now() + clockOffsetMs(headers),
    endpoint: `http://${headers.host}`,
    signal: hungUp.signal,
  };
}

/** Time by which a test app's clock is ahead, in milliseconds. */
export function clockOffsetMs(headers: Readonly<Record<string, unknown>>): number {
  const offset = String(headers["x-keelson-clock-offset"] ?? "");
  return /^\d{1,13}$/.test(offset) && Number(offset) <= largestClockOffsetMs ? Number(offset) : 0;
}

function internalError(error: unknown, reportFault: (error: unknown) => void) {
  reportFault(error);
  return new ServiceError(
    "com.amazon.coral.service#InternalServerError",
    "The embedded stack failed; its output has the reason",
    { status: 500 },
  );
}

function send(request: IncomingMessage, response: ServerResponse, status: number, body: object) {
  const text = JSON.stringify(body);
  // The rest of an unread body is not a request.
  if (!request.complete) response.setHeader("connection", "close");
  const json = "application/x-amz-json-1.";
  response.writeHead(status, {
    "content-type": json + (request.headers["content-type"] === `${json}1` ? 1 : 0),
    "content-length": Buffer.byteLength(text),
    "x-amz-crc32": crc32(text),
    "x-amzn-requestid": randomUUID(),
  });
  response.end(text);
}
