// Servers of `http.ts` that do for each request what keelson does: by hand, and with Fastify.
import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { DynamoDBProvider } from "@aws-lambda-powertools/parameters/dynamodb";
import fastify, { LogController } from "fastify";
import { destination } from "pino";

/** What the code of a request finds without being handed it. */
interface Ambient {
  readonly requestId: string;
  readonly signal: AbortSignal;
}

/** `node:http` with the headers, the store and the signal that keelson has, and nothing else. */
export async function startHandwritten(): Promise<number> {
  const store = new AsyncLocalStorage<Ambient>();
  const http = createServer(({ headers }, response) => {
    const requestId = requestIdOf(headers["x-request-id"]);
    store.run({ requestId, signal: signalOf(response) }, () => {
      const body = JSON.stringify({ maxMb: 77 });
      response.writeHead(200, {
        "content-type": "application/json; charset=utf-8",
        "content-length": Buffer.byteLength(body),
        "x-request-id": requestId,
        "x-content-type-options": "nosniff",
      });
      response.end(body);
    });
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  return (http.address() as AddressInfo).port; // safe: it listens on a port
}

/** Fastify with the same, a configuration read, and a line with redaction if the server has one for each request. */
export async function startEqual(isTold: boolean): Promise<number> {
  const parameters = new DynamoDBProvider({ tableName: "keelson-parameters" });
  const store = new AsyncLocalStorage<Ambient>();
  const app = fastify({
    logger: isTold ? { stream: destination({ dest: 1, sync: true }), redact } : false,
    logController: new LogController({ disableRequestLogging: true }),
    requestIdHeader: false,
    genReqId: ({ headers }) => requestIdOf(headers["x-request-id"]),
  });
  app.addHook("onRequest", (request, reply, done) => {
    reply.header("x-request-id", request.id);
    reply.header("x-content-type-options", "nosniff");
    store.run({ requestId: request.id, signal: signalOf(reply.raw) }, done);
  });
  if (isTold) {
    app.addHook(
      "onResponse",
      async ({ method, routeOptions, log }, { statusCode, elapsedTime }) => {
        log.info(
          { method, route: routeOptions.url, status: statusCode, durationMs: elapsedTime },
          "request.completed",
        );
      },
    );
  }
  app.get("/limits/silent", async () => ({
    maxMb: Number(await parameters.get("max-upload-size-mb", { maxAge: 3_600 })),
  }));
  await app.listen({ port: 0, host: "127.0.0.1" });
  return (app.server.address() as AddressInfo).port; // safe: it listens on a port
}

/** At the levels that pino can search; keelson redacts such names at any depth. */
const redact = ["password", "secret", "token", "authorization", "cookie"].flatMap((name) => [
  name,
  `*.${name}`,
]);

/** Aborts when the client leaves before the end of the response. */
function signalOf(response: ServerResponse): AbortSignal {
  const departure = new AbortController();
  response.on("close", () => {
    if (!response.writableFinished) departure.abort();
  });
  return departure.signal;
}

/** Adopts an ID that is safe in a log line, and makes one otherwise. */
function requestIdOf(given: string | string[] | undefined): string {
  const isAccepted =
    typeof given === "string" && given !== "" && given.length <= 128 && !unaccepted.test(given);
  return isAccepted ? given : randomUUID();
}

const unaccepted = /[^A-Za-z0-9._:=+/@-]/;
