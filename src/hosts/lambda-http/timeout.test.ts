// own process: it fakes timers
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { timeIsOver } from "../../../test/support/time-is-over.ts";
import { waitFor } from "../../../test/support/wait-for.ts";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import { currentContext } from "../../base/request/ambient.ts";
import type { HttpApiEvent } from "./api-gateway.ts";
import { lambdaHttp } from "./http-handler.ts";

let lines: string[];
let held: { resolve: (value: unknown) => void; reject: (error: unknown) => void };
let seen: { signal?: AbortSignal; late?: unknown };
/** What a handler that waits does first. */
let begun: () => void;

beforeEach(() => {
  lines = [];
  seen = {};
  begun = () => undefined;
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
        begun();
      });
      seen.late = await ctx.db
        .send(new GetCommand({ TableName: "t", Key: { pk: "1" } }))
        .catch((error: unknown) => error);
      return {};
    },
  });
  r.query("thing.now", {
    route: "GET /now",
    access: access.everyone,
    handler: async (ctx) => ({ signal: ctx.signal?.aborted }),
  });
});

const build = () =>
  buildServer({ features: [slow], log: { level: "debug" }, cors: { origins: "*" } });
const event = (path: string): HttpApiEvent =>
  ({
    version: "2.0",
    rawPath: path,
    headers: { "x-request-id": "r1", origin: "https://a.example" },
    requestContext: { http: { method: "GET" } },
  }) as unknown as HttpApiEvent; // the parts of the event that are read
const lasting = (ms: unknown) => ({ getRemainingTimeInMillis: () => ms }) as never; // the part of the context that is read
const logs = () => lines.map((line) => JSON.parse(line) as Record<string, unknown>);

test("shortly before the time is over, answers 504, aborts the signal and logs the handler's name", async () => {
  begun = timeIsOver;
  const { statusCode, headers, body } = await lambdaHttp(build())(event("/wait"), lasting(31_050));

  expect(statusCode).toBe(504);
  expect(headers).toMatchObject({ "x-request-id": "r1", "access-control-allow-origin": "*" });
  expect(JSON.parse(body ?? "")).toMatchObject({
    error: "timeout",
    message: "The request took too long",
    requestId: "r1",
  });
  expect(seen.signal?.aborted).toBe(true);
  expect(logs()).toMatchObject([
    {
      level: "warn",
      msg: "handler.abandoned",
      handler: "slow.thing.wait",
      afterMs: 31_000,
      requestId: "r1",
    },
    { level: "error", msg: "request.failed", error: "timeout", status: 504 },
    { level: "info", msg: "request.completed", status: 504, route: "/wait" },
  ]);
});

test("answers when 50 ms are left, neither earlier nor later", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const waits = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const done = vi.fn();
  const answered = lambdaHttp(build())(event("/wait"), lasting(10_000)).finally(done);
  await waits; // not `waitFor`, which would advance the fake timers

  await vi.advanceTimersByTimeAsync(9_949);
  expect(done).not.toHaveBeenCalled();

  await vi.advanceTimersByTimeAsync(1);
  expect(await answered).toMatchObject({ statusCode: 504 });
});

test("an abandoned handler's database calls fail, and its late result is dropped", async () => {
  begun = timeIsOver;
  const { statusCode } = await lambdaHttp(build())(event("/wait"), lasting(31_050));
  const before = lines.length;
  held.resolve(undefined);

  await waitFor(() => expect(seen.late).toBe(seen.signal?.reason));
  expect([statusCode, lines.length]).toEqual([504, before]);
});

test.each([
  ["bare", () => lambdaHttp(build())],
  ["behind a middleware", () => lambdaHttp(build()).before(() => undefined)],
])(
  "logs an abandoned handler's late error, %s, at debug level, without an unhandled rejection",
  async (_how, make) => {
    const http = make();
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    await http(event("/wait"), lasting(0));
    held.reject(new Error("too late"));

    await waitFor(() =>
      expect(logs().at(-1)).toMatchObject({
        level: "debug",
        msg: "handler.failed_late",
        message: "too late",
      }),
    );
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  },
);

test("cuts off a middleware that hangs before the handler", async () => {
  const http = lambdaHttp(build()).before(() => new Promise(() => {}));

  expect((await http(event("/now"), lasting(60))).statusCode).toBe(504);
});

test("one timer serves all invocations", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const http = lambdaHttp(build());
  const waiting = http(event("/wait"), lasting(60_000));
  await waitFor(() => expect(seen.signal).toBeDefined());
  expect(vi.getTimerCount()).toBe(1);
  const answers = [
    await http(event("/now"), lasting(90_000)),
    await http(event("/nowhere"), lasting(90_000)),
    await http(event("/now"), lasting(60)), // due before the timer
  ];
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 404, 200]);
  expect(vi.getTimerCount()).toBe(1);
  held.reject(new Error("enough"));
  expect((await waiting).statusCode).toBe(500);
});

test("an otherwise idle process lives until the time is over, and then ends", async () => {
  const source = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
  const script = `
    import { access, buildServer, defineFeature } from ${source("../../index.ts")};
    import { lambdaHttp } from ${source("../lambda/index.ts")};
    const slow = defineFeature("slow", (r) => {
      r.query("thing.wait", { route: "GET /wait", access: access.everyone, handler: () => new Promise(() => {}) });
    });
    const event = { version: "2.0", rawPath: "/wait", headers: {}, requestContext: { http: { method: "GET" } } };
    lambdaHttp(buildServer({ features: [slow] }))(event, { getRemainingTimeInMillis: () => 1_000 })
      .then(({ statusCode }) => console.log(statusCode));`;
  const env = { ...process.env, AWS_REGION: "eu-central-1", NODE_ENV: "production" };
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--input-type=module", "-e", script],
    { env },
  );
  expect(stdout.trim().split("\n").at(-1)).toBe("504");
});

test("cuts off an invocation due earlier in its own time, while one due later goes on", async () => {
  const http = lambdaHttp(build());
  const later = http(event("/wait"), lasting(600_000));
  await waitFor(() => expect(seen.signal).toBeDefined());
  const first = { held, signal: seen.signal };
  begun = timeIsOver;
  expect((await http(event("/wait"), lasting(31_050))).statusCode).toBe(504);
  expect(first.signal?.aborted).toBe(false);
  held.reject(new Error("late"));
  first.held.reject(new Error("enough"));
  expect((await later).statusCode).toBe(500);
});

test.each([
  ["back", -300_000],
  ["forward", 300_000],
])(
  "a clock that is set %s during an invocation does not move its deadline",
  async (_way, stepMs) => {
    const http = lambdaHttp(build());
    const later = http(event("/wait"), lasting(60_000));
    await waitFor(() => expect(seen.signal).toBeDefined());
    const first = { held, signal: seen.signal };
    const { now } = Date;
    begun = () => void vi.spyOn(Date, "now").mockImplementation(() => now() + stepMs);
    expect((await http(event("/wait"), lasting(150))).statusCode).toBe(504);
    expect(first.signal?.aborted).toBe(false);
    held.reject(new Error("late"));
    first.held.reject(new Error("enough"));
    expect((await later).statusCode).toBe(500);
  },
);

test("abort listeners run in the context of their own request", async () => {
  const heard: (string | undefined)[] = [];
  const listening = defineFeature("listening", (r) => {
    r.query("thing.hear", {
      route: "GET /hear",
      access: access.everyone,
      handler: async (ctx) => {
        ctx.signal?.addEventListener("abort", () => heard.push(currentContext()?.requestId));
        await new Promise(() => {});
      },
    });
  });
  const http = lambdaHttp(buildServer({ features: [listening] }));
  const withId = (id: string) => ({ ...event("/hear"), headers: { "x-request-id": id } });
  const all = ["a", "b", "c"].map((id, n) => http(withId(id), lasting(100 + n * 20)));
  expect((await Promise.all(all)).map(({ statusCode }) => statusCode)).toEqual([504, 504, 504]);
  expect(heard.sort()).toEqual(["a", "b", "c"]);
});

test("has a signal only when the context gives a remaining time", async () => {
  const http = lambdaHttp(build());
  const signalWith = async (context: unknown) =>
    JSON.parse((await http(event("/now"), context as never)).body ?? "").signal;

  expect(await signalWith(lasting(60_000))).toBe(false);
  expect(await signalWith(lasting(1e15))).toBe(false);
  for (const context of [undefined, {}, lasting("long"), lasting(Number.POSITIVE_INFINITY)])
    expect(await signalWith(context)).toBe(undefined);
});
