import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { defineFeature } from "../app/feature.ts";
import { buildServer } from "../app/server.ts";
import { access } from "../identity/access.ts";
import type { HttpApiEvent } from "./http-api.ts";
import { lambdaHttp } from "./http-handler.ts";

let lines: string[];
let held: { resolve: (value: unknown) => void; reject: (error: unknown) => void };
let seen: { signal?: AbortSignal; late?: unknown };

beforeEach(() => {
  lines = [];
  seen = {};
  vi.spyOn(process.stdout, "write").mockImplementation((line) => lines.push(String(line)) > 0);
});
afterEach(() => {
  vi.restoreAllMocks();
});

const slow = defineFeature("slow", (r) => {
  r.query("thing.wait", {
    route: "GET /wait",
    access: access.everyone,
    handler: async (ctx) => {
      if (ctx.signal !== undefined) seen.signal = ctx.signal;
      await new Promise((resolve, reject) => {
        held = { resolve, reject };
      });
      seen.late = await ctx.db.send(new GetCommand({ TableName: "t", Key: { pk: "1" } })).catch((error: unknown) => error);
      return {};
    },
  });
  r.query("thing.now", {
    route: "GET /now",
    access: access.everyone,
    handler: async (ctx) => ({ signal: ctx.signal?.aborted }),
  });
});

const build = () => buildServer({ features: [slow], log: { level: "debug" }, cors: { origins: "*" } });
const event = (path: string): HttpApiEvent =>
  ({
    version: "2.0",
    rawPath: path,
    headers: { "x-request-id": "r1", origin: "https://a.example" },
    requestContext: { http: { method: "GET" } },
  }) as unknown as HttpApiEvent; // the parts of the event that are read
const lasting = (ms: unknown) => ({ getRemainingTimeInMillis: () => ms }) as never; // the part of the context that is read
const logs = () => lines.map((line) => JSON.parse(line) as Record<string, unknown>);

test("shortly before the time is over the answer is a 504, the signal aborts, and the log names the handler", async () => {
  const { statusCode, headers, body } = await lambdaHttp(build())(event("/wait"), lasting(150));

  expect(statusCode).toBe(504);
  expect(headers).toMatchObject({ "x-request-id": "r1", "access-control-allow-origin": "*" });
  expect(JSON.parse(body ?? "")).toMatchObject({ error: "timeout", message: "The request took too long", requestId: "r1" });
  expect(seen.signal?.aborted).toBe(true);
  expect(logs()).toMatchObject([
    { level: "warn", msg: "handler.abandoned", handler: "slow.thing.wait", afterMs: 100, requestId: "r1" },
    { level: "error", msg: "request.failed", error: "timeout", status: 504 },
  ]);
});

test("an abandoned handler's database refuses, and its late result is dropped", async () => {
  const { statusCode } = await lambdaHttp(build())(event("/wait"), lasting(60));
  const before = lines.length;
  held.resolve(undefined);

  await vi.waitFor(() => expect(seen.late).toBe(seen.signal?.reason), 10_000);
  expect([statusCode, lines.length]).toEqual([504, before]);
});

test("an abandoned handler's late error is logged for debugging and is nobody's unhandled rejection", async () => {
  const unhandled = vi.fn();
  process.on("unhandledRejection", unhandled);
  await lambdaHttp(build())(event("/wait"), lasting(0));
  held.reject(new Error("too late"));

  await vi.waitFor(
    () => expect(logs().at(-1)).toMatchObject({ level: "debug", msg: "handler.failed_late", message: "too late" }),
    10_000,
  );
  await new Promise((resolve) => setImmediate(resolve));
  process.off("unhandledRejection", unhandled);
  expect(unhandled).not.toHaveBeenCalled();
});

test("a middleware that hangs before the handler is cut off as well", async () => {
  const http = lambdaHttp(build()).before(() => new Promise(() => {}));

  expect((await http(event("/now"), lasting(60))).statusCode).toBe(504);
});

test("no timer is left after an answer or an error, and an error in time is not taken for a timeout", async () => {
  const clear = vi.spyOn(globalThis, "clearTimeout");
  const set = vi.spyOn(globalThis, "setTimeout");
  const http = lambdaHttp(build());
  const answers = [await http(event("/now"), lasting(60_000)), await http(event("/nowhere"), lasting(60_000))];
  const started = set.mock.results.filter((_, index) => set.mock.calls[index]?.[1] === 59_950).map(({ value }) => value);

  expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 404]);
  expect(started).toHaveLength(2);
  for (const timer of started) expect(clear).toHaveBeenCalledWith(timer);
});

test("a signal is there where the context knows a time, and only there", async () => {
  const http = lambdaHttp(build());
  const signalWith = async (context: unknown) => JSON.parse((await http(event("/now"), context as never)).body ?? "").signal;

  expect(await signalWith(lasting(60_000))).toBe(false);
  expect(await signalWith(lasting(1e15))).toBe(false);
  for (const context of [undefined, {}, lasting("long"), lasting(Number.POSITIVE_INFINITY)])
    expect(await signalWith(context)).toBe(undefined);
});
