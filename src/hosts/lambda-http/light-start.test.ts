import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { GetCommand, paginateQuery } from "@aws-sdk/lib-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import * as z from "zod/mini";
import { defineFeature, type Feature } from "../../app/features/feature.ts";
import { buildServer, type Server, serverInternals } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import { createSystemConfig } from "../../parts/config/declare/declaration.ts";
import type { HttpApiEvent } from "./api-gateway.ts";
import { type LambdaHttpHandler, lambdaHandler, lambdaHttp } from "./http-handler.ts";
import { loadSdkForHttp as loadSdk } from "./lambda-runtime.ts";

/** The calls of the store, and whether the SDK made them. */
let calls: { readonly operation: string; readonly bySdk: boolean }[] = [];
let answer: (response: ServerResponse, operation: string) => void;
const servers: Server[] = [];
const http = createServer((request, response) => {
  const operation = String(request.headers["x-amz-target"]).replace(/^.*\./, "");
  calls.push({ operation, bySdk: request.headers["user-agent"] !== undefined });
  request.resume();
  answer(response, operation);
});

const found: typeof answer = (response, operation) => {
  const row = marshall({ pk: "config#system", sk: "limits:config:limit", value: 7, version: 1 });
  const answers: Record<string, unknown> = {
    BatchGetItem: { Responses: { "keelson-config": [row] } },
    GetItem: { Item: marshall({ id: "1", text: "kept" }) },
    Query: { Items: [marshall({ id: "1" })] },
  };
  response.end(JSON.stringify(answers[operation] ?? {}));
};

beforeEach(async () => {
  calls = [];
  answer = found;
  if (!http.listening) await once(http.listen(0, "127.0.0.1"), "listening");
  const { port } = http.address() as AddressInfo; // safe: it listens on a port
  vi.stubEnv("AWS_ENDPOINT_URL", `http://127.0.0.1:${port}`);
  vi.stubEnv("AWS_REGION", "us-east-1");
  vi.stubEnv("AWS_ACCESS_KEY_ID", "AKID");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
  vi.stubEnv("AWS_PROFILE", undefined);
  vi.stubEnv("HOME", "/nonexistent");
});
afterEach(async () => {
  for (const server of servers.splice(0)) await serverInternals(server).runtime?.close();
  vi.unstubAllEnvs();
  http.closeAllConnections();
  await new Promise((resolve) => http.close(resolve));
});

const limits = defineFeature("limits", (r) => {
  const { limit } = r.config({
    keys: { limit: createSystemConfig("number", { default: 1, bounds: { min: 1, max: 9 } }) },
  });
  const query = (name: string, handler: Parameters<typeof r.query>[1]["handler"]) =>
    r.query(`limit.${name}`, { route: `GET /${name}`, access: access.everyone, handler });
  query("show", async (ctx) => ctx.config(limit));
  query("item", async (ctx) => {
    const { Item } = await ctx.db.send(new GetCommand({ TableName: "others", Key: { id: "1" } }));
    return [await ctx.config(limit), Item];
  });
  query("pages", async (ctx) => {
    const pages = [];
    for await (const { Items } of paginateQuery({ client: ctx.db }, { TableName: "others" }))
      pages.push(Items);
    return pages;
  });
});
const notes = defineFeature("notes", (r) => {
  const { limit } = r.config({
    keys: { limit: createSystemConfig("number", { default: 1, bounds: { min: 1, max: 9 } }) },
  });
  r.table("notes", { partitionKey: "pk", tenant: false });
  r.query("note.limit", {
    route: "GET /notes",
    access: access.everyone,
    handler: async (ctx) => ctx.config(limit),
  });
});
const marks = defineFeature("marks", (r) => ({
  set: r.write("mark.set", {
    route: "PUT /marks",
    access: access.everyone,
    handler: async () => 1,
  }),
}));
const hooking = defineFeature("hooking", (r) => {
  r.hook(marks.set, { after: async () => undefined });
});
const telling = defineFeature("telling", (r) => {
  r.event("mark.told", z.object({}));
});

const serve = (features: readonly Feature[] = [limits], options = {}) => {
  const server = buildServer({
    features,
    log: { level: "error" },
    cache: { ttlMs: 0 },
    ...options,
  });
  servers.push(server);
  return server;
};

async function ask(function_: LambdaHttpHandler, path: string): Promise<unknown> {
  const event = {
    version: "2.0",
    rawPath: path,
    rawQueryString: "",
    headers: {},
    isBase64Encoded: false,
    requestContext: { stage: "$default", http: { method: "GET", path, sourceIp: "203.0.113.9" } },
  } as unknown as HttpApiEvent; // the parts of the event that are read
  const { statusCode, body } = await function_(event, {} as never);
  expect(statusCode).toBe(200);
  return JSON.parse(body ?? "");
}

test("a query that only reads configuration never needs the SDK", async () => {
  const show = lambdaHandler(serve(), "limits.limit.show");
  for (let time = 0; time < 3; time++) expect(await ask(show, "/show")).toBe(7);
  expect(calls).toEqual(Array(3).fill({ operation: "BatchGetItem", bySdk: false }));
});

test("a server with metrics reads without the SDK as well", async () => {
  expect(
    await ask(lambdaHandler(serve([limits], { metrics: {} }), "limits.limit.show"), "/show"),
  ).toBe(7);
  expect(calls).toEqual([{ operation: "BatchGetItem", bySdk: false }]);
});

test("falls back to the SDK when the store answers with an error, unnoticed by the request", async () => {
  answer = (response, operation) => {
    if (calls.length > 1) return found(response, operation);
    return response.writeHead(400).end('{"__type":"x#ProvisionedThroughputExceededException"}');
  };
  const show = lambdaHandler(serve(), "limits.limit.show");
  for (let time = 0; time < 2; time++) expect(await ask(show, "/show")).toBe(7);
  expect(calls.map(({ bySdk }) => bySdk)).toEqual([false, true, true]);
});

test("ctx.db waits for the SDK, which then makes all reads", async () => {
  const everything = lambdaHttp(serve());
  expect(await ask(everything, "/show")).toBe(7);
  expect(await ask(everything, "/item")).toEqual([7, { id: "1", text: "kept" }]);
  expect(calls.map(({ bySdk }) => bySdk)).toEqual([false, true, true]);
});

test("the SDK's paginators accept ctx.db in the first request", async () => {
  expect(await ask(lambdaHandler(serve(), "limits.limit.pages"), "/pages")).toEqual([
    [{ id: "1" }],
  ]);
});

test.each([
  ["of a feature with tables", [limits, notes], "/notes", {}],
  ["of a server with an endpoint of its own", [limits], "/show", { dynamodb: {} }],
])("a query %s waits for the SDK as usual", async (_which, features, path, options) => {
  const endpoint = String(process.env["AWS_ENDPOINT_URL"]);
  const server = serve([...features], "dynamodb" in options ? { dynamodb: { endpoint } } : {});
  await ask(lambdaHttp(server), path);
  expect(calls).toEqual([{ operation: "BatchGetItem", bySdk: true }]);
});

test("leaves settings that only the SDK understands to the SDK", async () => {
  vi.stubEnv("AWS_DEFAULTS_MODE", "in-region");
  expect(await ask(lambdaHandler(serve(), "limits.limit.show"), "/show")).toBe(7);
  expect(calls).toEqual([{ operation: "BatchGetItem", bySdk: true }]);
});

test("a server that was closed, before or after it was ready, serves again", async () => {
  const server = serve();
  const show = lambdaHandler(server, "limits.limit.show");
  for (const isReady of [false, true]) {
    expect(await ask(show, "/show")).toBe(7);
    if (isReady) await server.ready();
    await serverInternals(server).runtime?.close();
  }
  expect(await ask(show, "/show")).toBe(7);
  expect(calls.map(({ bySdk }) => bySdk)).toEqual([false, false, false]);
});

test("a starting function loads the SDK, unless everything it answers reads configuration or claims a write", async () => {
  const isLoaded = (features: readonly Feature[], name?: string, options = {}) =>
    loadSdk(serverInternals(serve([...features], options)), name) !== undefined;

  expect(isLoaded([limits])).toBe(false);
  expect(isLoaded([limits, notes, marks], "limits.limit.show")).toBe(false);
  expect(isLoaded([limits, notes])).toBe(true);
  expect(isLoaded([limits, marks])).toBe(false);
  expect(isLoaded([limits, marks], "marks.mark.set")).toBe(false);
  expect(isLoaded([marks, hooking], "marks.mark.set")).toBe(true);
  expect(isLoaded([marks, telling], "marks.mark.set")).toBe(true);
  expect(isLoaded([limits], undefined, { dynamodb: { endpoint: "http://127.0.0.1:1" } })).toBe(
    true,
  );
  const perHour = { per: "tenant", requests: 1, window: "hour" } as const;
  for (const options of [
    { ssm: { path: "/app" } },
    { tenants: true },
    { auth: { secret: "a secret of at least 32 characters", apiKeys: true } },
    { log: { cost: true } },
    { rateLimit: perHour },
  ])
    expect([options, isLoaded([limits], undefined, options)]).toEqual([options, true]);
  const noKeys = { secret: "a secret of at least 32 characters", apiKeys: false };
  expect(isLoaded([limits], undefined, { auth: noKeys })).toBe(false);
  const handler = async () => ({});
  const every = { access: access.everyone, handler } as const;
  for (const feature of [
    defineFeature("limited", (r) => void r.query("a.b", { route: "GET /a", ...every }), {
      rateLimit: perHour,
    }),
    defineFeature("limiting", (r) => {
      r.query("a.b", { route: "GET /a", ...every, rateLimit: perHour });
    }),
    defineFeature("taking", (r) => {
      r.rateLimit("sms", perHour);
      r.query("a.b", { route: "GET /a", ...every });
    }),
    defineFeature("counting", (r) => {
      r.quota("pages", { limit: 5, window: "month" });
      r.query("a.b", { route: "GET /a", ...every });
    }),
  ])
    expect([feature.name, isLoaded([feature])]).toEqual([feature.name, true]);
  expect(isLoaded([limits], undefined, { log: {} })).toBe(false);
  vi.stubEnv("AWS_LAMBDA_INITIALIZATION_TYPE", "provisioned-concurrency");
  expect(isLoaded([limits])).toBe(true);
  vi.stubEnv("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand");
  expect(isLoaded([limits])).toBe(false);
  vi.stubEnv("AWS_ACCESS_KEY_ID", "");
  expect(isLoaded([limits])).toBe(true);
});
