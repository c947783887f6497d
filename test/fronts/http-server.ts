import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import middy from "@middy/core";
import type { Runtime } from "../../src/app/runtime/runtime.ts";
import type { HttpServerOptions } from "../../src/hosts/container-http/http-options.ts";
import { createHttpServer as createContainer } from "../../src/hosts/container-http/http-server.ts";
import { httpMode } from "../../src/hosts/lambda-http/http-events.ts";
import { lazyMode } from "../../src/hosts/lambda-http/lazy-mode.ts";
import { httpMode as streamMode } from "../../src/hosts/lambda-http/streamed-events.ts";
import { lambdaEvent } from "../../src/tools/testing/lambda-event.ts";
import { forwardToWebFunction } from "../support/web-function.ts";
import { responseSink, streamingRuntime } from "./response-sink.ts";

/** Fronts of Lambda, as `keelson infra --front` names them. */
export const fronts = ["web", "http", "rest", "url"] as const;
type Front = (typeof fronts)[number];

const front = process.env["KEELSON_TEST_FRONT"] as Front; // safe: vitest.config.ts sets it

/** Stands in for the server of a test app: the requests that a test sends come through one of Lambda's fronts. */
export function createHttpServer(runtime: Runtime, options: HttpServerOptions): { http: Server } {
  return { http: front === "web" ? webFunction(runtime, options) : eventFunction(runtime, front) };
}

/** A Web Function behind its front, which has listened before it. */
function webFunction(runtime: Runtime, options: HttpServerOptions): Server {
  const { http: own } = createContainer(runtime, options, { isWebFunction: true });
  const http = createServer(async (incoming, outgoing) => {
    const { port } = own.address() as AddressInfo; // safe: it listens on a port
    await forwardToWebFunction(port, incoming, outgoing);
  });
  http.on("listening", () => own.listen(0, "127.0.0.1"));
  http.on("close", () => {
    own.closeAllConnections();
    own.close();
  });
  return http;
}

/** Lambda's description of an invocation. */
const context = { getRemainingTimeInMillis: () => 60_000 };

const events = { http: "httpApi", rest: "restApi", url: "functionUrl" } as const;

function eventFunction(runtime: Runtime, front: Exclude<Front, "web">): Server {
  const isStreaming = front !== "http";
  if (isStreaming) Object.assign(globalThis, { awslambda: streamingRuntime });
  const executionMode = lazyMode(
    async () => (isStreaming ? streamMode(runtime) : httpMode(runtime)),
    isStreaming ? streamingRuntime.streamifyResponse : undefined,
  );
  // Safe: Lambda calls it so.
  const invoke = middy({ executionMode }).handler(() => undefined) as unknown as (
    ...given: readonly unknown[]
  ) => Promise<unknown>;
  return createServer(async (incoming, outgoing) => {
    const event = await eventOf(front, incoming);
    try {
      if (isStreaming) await invoke(event, responseSink(outgoing), context);
      else write(outgoing, (await invoke(event, context)) as Result); // safe: a result for an HTTP API
    } catch {
      outgoing.writeHead(502).end(); // what Lambda's fronts answer for an error
    }
  });
}

async function eventOf(front: Exclude<Front, "web">, incoming: IncomingMessage) {
  const { method = "", url = "", headers } = incoming;
  const body = await buffer(incoming);
  const { cookie, connection: _connection, ...others } = headers;
  return lambdaEvent(events[front], {
    method,
    path: url,
    headers: Object.fromEntries(
      Object.entries(others).map(([name, value]) => [name, [value].flat().join(", ")]),
    ),
    ...(cookie === undefined ? {} : { cookies: cookie.split("; ") }),
    ...(body.byteLength === 0 ? {} : { body }),
    ip: "127.0.0.1",
  });
}

interface Result {
  readonly statusCode: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cookies?: readonly string[];
  readonly body?: string;
  readonly isBase64Encoded?: boolean;
}

function write(outgoing: ServerResponse, result: Result): void {
  const { statusCode, headers = {}, cookies = [], body, isBase64Encoded } = result;
  outgoing.writeHead(statusCode, {
    ...headers,
    ...(cookies.length > 0 ? { "set-cookie": [...cookies] } : {}),
  });
  outgoing.end(
    body === undefined ? undefined : Buffer.from(body, isBase64Encoded ? "base64" : "utf8"),
  );
}
