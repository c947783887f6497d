// One of the HTTP servers of `http.ts`, in a process of its own: `node http-server.ts <ours|bare|floor|fastify|equal> <silent|logged|told|measured>`.
import { writeSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { DynamoDBProvider } from "@aws-lambda-powertools/parameters/dynamodb";
import fastify, { LogController } from "fastify";
import { destination } from "pino";
import { Histogram, Registry } from "prom-client";
import { runContainer } from "../src/hosts/container/index.ts";
import { measuring, server, telling } from "./feature.ts";
import { startEqual, startHandwritten } from "./http-equal.ts";

/** What there is of a request beside its answer. */
interface Kind {
  /** Its handler writes a line. */
  readonly isLogged: boolean;
  /** It has a line at its end. */
  readonly isTold: boolean;
  /** It is measured. */
  readonly isMeasured: boolean;
}

const starts: Readonly<Record<string, (kind: Kind) => Promise<number>>> = {
  ours: async ({ isTold, isMeasured }) => {
    const served = isTold ? telling : isMeasured ? measuring : server;
    return (await runContainer(served, { port: 0, host: "127.0.0.1" })).port;
  },
  bare: async ({ isLogged }) => {
    const http = createServer(({ headers }, response) => {
      if (isLogged) writeSync(1, line(headers["x-request-id"]));
      const body = JSON.stringify({ maxMb: 77 });
      response.writeHead(200, {
        "content-type": "application/json; charset=utf-8",
        "content-length": Buffer.byteLength(body),
      });
      response.end(body);
    });
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    return (http.address() as AddressInfo).port; // safe: it listens on a port
  },
  floor: startHandwritten,
  equal: ({ isTold }) => startEqual(isTold),
  fastify: async ({ isLogged, isTold, isMeasured }) => {
    const parameters = new DynamoDBProvider({ tableName: "keelson-parameters" });
    const logger = isLogged || isTold ? { stream: destination({ dest: 1, sync: true }) } : false;
    const app = fastify({
      logger,
      logController: new LogController({ disableRequestLogging: true }),
      requestIdHeader: "x-request-id",
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
    if (isMeasured) {
      const duration = new Histogram({
        name: "http_server_request_duration_seconds",
        help: "How long a request took.",
        labelNames: ["method", "route", "status"],
        registers: [new Registry()],
      });
      app.addHook("onResponse", async ({ method, routeOptions }, { statusCode, elapsedTime }) => {
        duration.observe(
          { method, route: routeOptions.url ?? "none", status: statusCode },
          elapsedTime / 1_000,
        );
      });
    }
    app.get(`/limits/${isLogged ? "logged" : "silent"}`, async (request, reply) => {
      const maxMb = Number(await parameters.get("max-upload-size-mb", { maxAge: 3_600 }));
      if (isLogged) request.log.info({ maxMb, plan: "pro" }, "limits.read");
      reply.header("x-request-id", request.id);
      return { maxMb };
    });
    await app.listen({ port: 0, host: "127.0.0.1" });
    return (app.server.address() as AddressInfo).port; // safe: it listens on a port
  },
};

const [, , name = "", kind] = process.argv;
process.send?.({
  port: await starts[name]?.({
    isLogged: kind === "logged",
    isTold: kind === "told",
    isMeasured: kind === "measured",
  }),
});
process.on("message", (what) => process.send?.(what === "cpu" ? cpu() : heap()));
process.on("disconnect", () => process.exit());

/** What the line of the others says that is not of keelson's context. */
function line(requestId: unknown): string {
  const time = new Date().toISOString();
  return `${JSON.stringify({ level: "info", msg: "limits.read", maxMb: 77, plan: "pro", requestId, time })}\n`;
}

function cpu(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

function heap(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}
