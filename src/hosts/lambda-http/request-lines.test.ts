import middy from "@middy/core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer } from "../../app/server/server.ts";
import { NotFoundError } from "../../base/errors/errors.ts";
import { access } from "../../base/identity/access.ts";
import type { RequestLines } from "../../base/log/log-options.ts";
import { reply } from "../../parts/http/reply.ts";
import { lambdaEvent } from "../../tools/testing/index.ts";
import { requestScope } from "../middy/middy.ts";
import type { LambdaHttpEvent } from "./http-events.ts";
import { lambdaHttp } from "./http-handler.ts";

let logs: Record<string, unknown>[] = [];
beforeEach(() => {
  logs = [];
  vi.spyOn(process.stdout, "write").mockImplementation(
    (line) => logs.push(JSON.parse(String(line)) as Record<string, unknown>) > 0,
  );
});
afterEach(() => {
  vi.restoreAllMocks();
});

const files = defineFeature("files", (r) => {
  const everyone = { access: access.everyone };
  const octets = { headers: { "content-type": "application/octet-stream" } };
  r.query("file.show", {
    route: "GET /files/:id",
    ...everyone,
    handler: async () => ({ name: "ä" }),
  });
  r.query("file.bytes", {
    route: "GET /bytes",
    ...everyone,
    handler: async () => reply(new Uint8Array(1_000), octets),
  });
  r.query("file.stream", {
    route: "GET /stream",
    ...everyone,
    handler: async () => reply(new Response("streamed").body, octets),
  });
  r.query("file.huge", {
    route: "GET /huge",
    ...everyone,
    handler: async () => reply(new Uint8Array(7_000_000), octets),
  });
  r.query("file.none", { route: "GET /none", ...everyone, handler: async () => undefined });
  r.query("file.stuck", { route: "GET /stuck", ...everyone, handler: () => new Promise(() => {}) });
});
const serverOf = (requests: RequestLines = true) =>
  buildServer({ features: [files], log: { level: "info", requests } });
const lasting = (ms: number) => ({ getRemainingTimeInMillis: () => ms }) as never; // the part of the context that is read
const completed = () =>
  logs.filter(({ msg }) => msg === "request.completed" || msg === "run.completed");
const any = expect.any(String);
const usual = {
  level: "info",
  method: "GET",
  replayed: false,
  durationMs: expect.any(Number),
  time: any,
  trace_id: any,
};

test.each(["httpApi", "restApi", "loadBalancer"] as const)(
  "logs one line for the response to an event of %s",
  async (shape) => {
    const handler = lambdaHttp<LambdaHttpEvent>(serverOf());
    for (const path of ["/files/7", "/bytes", "/stream", "/none", "/nowhere", "/health/live"]) {
      await handler(
        lambdaEvent(shape, { path, headers: { "x-request-id": "r1" } }) as never,
        {} as never,
      );
    }

    const ofFile = (name: string) => ({
      ...usual,
      msg: "request.completed",
      requestId: "r1",
      handler: `files.file.${name}`,
    });
    expect(completed()).toEqual([
      { ...ofFile("show"), route: "/files/:id", status: 200, bytes: 13, coldStart: true },
      { ...ofFile("bytes"), route: "/bytes", status: 200, bytes: 1_000, coldStart: false },
      { ...ofFile("stream"), route: "/stream", status: 200, bytes: 8, coldStart: false },
      { ...ofFile("none"), route: "/none", status: 204, bytes: 0, coldStart: false },
      {
        ...usual,
        msg: "request.completed",
        requestId: "r1",
        status: 404,
        bytes: expect.any(Number),
        coldStart: false,
      },
    ]);
  },
);

test("logs the error that replaces a response that is too large or too late", async () => {
  const handler = lambdaHttp(serverOf());
  await handler(lambdaEvent("httpApi", { path: "/huge" }), {} as never);
  await handler(lambdaEvent("httpApi", { path: "/stuck" }), lasting(60));

  expect(completed()).toMatchObject([
    { route: "/huge", status: 500 },
    { route: "/stuck", status: 504, durationMs: expect.any(Number) },
  ]);
  expect(completed()[0]?.["bytes"]).toBeLessThan(1_000);
});

test("logs the response as a middleware changed it", async () => {
  const handler = lambdaHttp(serverOf()).after((request) => {
    request.response = { statusCode: 202, body: "changed" };
  });
  await handler(lambdaEvent("httpApi", { path: "/files/7" }), {} as never);
  expect(completed()).toMatchObject([{ route: "/files/:id", status: 202, bytes: 7 }]);
});

test("logs nothing when request lines are turned off", async () => {
  const handler = lambdaHttp(serverOf(false));
  await handler(lambdaEvent("httpApi", { path: "/files/7" }), {} as never);
  expect(logs).toEqual([]);
});

const adopted = (existing: () => unknown, requests: RequestLines = true) => {
  const handler = middy({
    executionMode: requestScope(serverOf(requests), {
      handler: "legacy.order.show",
      access: access.everyone,
    }),
  }).handler(existing);
  return (event: object) => handler(event as never, {} as never);
};
const http = (more: object) => ({ ...lambdaEvent("httpApi", { path: "/orders/7" }), ...more });

test.each([
  ["an HTTP API", http({ routeKey: "GET /orders/{id}" }), "/orders/{id}"],
  [
    "a REST API",
    { ...lambdaEvent("restApi", { path: "/orders/7" }), resource: "/orders/{id}" },
    "/orders/{id}",
  ],
  ["a route for everything", http({ routeKey: "ANY /{proxy+}" }), undefined],
  ["a function URL", http({ routeKey: "$default" }), undefined],
])(
  "logs a line for an adopted handler too, with the pattern that %s has matched",
  async (_name, event, route) => {
    await adopted(() => ({ statusCode: 200, body: "{}" }))(event);
    expect(completed()).toMatchObject([
      { msg: "request.completed", handler: "legacy.order.show", status: 200, bytes: 2 },
    ]);
    expect(completed()[0]?.["route"]).toBe(route);
  },
);

test("logs a run for an adopted handler of other events, whether it succeeds or fails", async () => {
  await adopted(() => "done")({ Records: [] });
  const failing = adopted(() => {
    throw new NotFoundError("order", "7");
  });
  await expect(failing({ Records: [] })).rejects.toThrow();

  const run = {
    msg: "run.completed",
    level: "info",
    handler: "legacy.order.show",
    replayed: false,
  };
  expect(completed()).toMatchObject([
    { ...run, outcome: "processed" },
    { ...run, outcome: "failed" },
  ]);
  logs = [];
  await adopted(() => "done", false)({ Records: [] });
  await expect(
    adopted(() => Promise.reject(new Error("broken")), false)({ Records: [] }),
  ).rejects.toThrow();
  expect(logs.map(({ msg }) => msg)).toEqual(["request.failed"]);
});
