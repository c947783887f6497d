import { GetCommand, PutCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { expect, test, vi } from "vitest";
import { waitFor } from "../../../test/support/wait-for.ts";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer } from "../../app/server/server.ts";
import { ConflictError } from "../../base/errors/errors.ts";
import { access } from "../../base/identity/access.ts";
import { createTenantConfig } from "../../parts/config/declare/declaration.ts";
import { CrashError, crashEverywhere, startTestApp, type TestApp } from "./index.ts";

const ann = { id: "ann", tenantId: "acme" };
let held: PromiseWithResolvers<void> | undefined;
let answers: unknown[] = [];
let started = 0;

const counters = defineFeature("counters", (r) => {
  const table = r.table("counters", { partitionKey: "pk", tenant: false });
  const Key = { pk: "a" };
  const add = { UpdateExpression: "ADD amount :one", ExpressionAttributeValues: { ":one": 1 } };
  r.write("counter.add", {
    route: "POST /counters",
    access: access.authenticated,
    handler: async (ctx) =>
      ctx.commit([{ Update: { TableName: table.name, Key, ...add } }], { added: 1 }),
  });
  r.write("counter.careless", {
    route: "POST /counters/careless",
    access: access.authenticated,
    handler: async (ctx) => {
      await ctx.db.send(new UpdateCommand({ TableName: table.name, Key, ...add }));
      return { added: 1 };
    },
  });
  r.write("counter.slow", {
    route: "POST /counters/slow",
    access: access.authenticated,
    handler: async (ctx) => {
      started += 1;
      await held?.promise;
      answers.push(
        await ctx.db
          .send(new PutCommand({ TableName: table.name, Item: Key }))
          .catch((error: unknown) => error),
      );
      ctx.log.info("counter.said");
      return {};
    },
  });
  r.write("counter.refuse", {
    route: "POST /counters/refuse",
    access: access.authenticated,
    handler: async () => {
      throw new ConflictError("taken");
    },
  });
  r.query("counter.show", {
    route: "GET /counters",
    access: access.authenticated,
    handler: async (ctx) =>
      (await ctx.db.send(new GetCommand({ TableName: table.name, Key, ConsistentRead: true })))
        .Item ?? {},
  });
  r.query("counter.nothing", { handler: async () => ({}) });
});
const server = buildServer({ features: [counters] });
const headers = { "idempotency-key": "k1" };
const amountOf = async (app: TestApp) =>
  ((await (await app.fetch("/counters", { as: ann })).json()) as { amount?: number }).amount;

test("a crash fails everything in progress, drops its late calls, and restarts the process for the next request", async () => {
  const app = await startTestApp(server);
  try {
    held = Promise.withResolvers();
    answers = [];
    const underWay = Promise.allSettled([
      app.fetch("/counters/slow", { body: {}, as: ann }),
      app.call("counters.counter.slow", {}, { as: ann }),
    ]);
    await waitFor(() => expect(started).toBe(2));
    app.faults.before("TransactWriteItems", 1).crash();
    await expect(app.fetch("/counters", { body: {}, as: ann, headers })).rejects.toBeInstanceOf(
      CrashError,
    );
    expect(
      (await underWay).map((outcome) => outcome.status === "rejected" && outcome.reason),
    ).toEqual([expect.any(CrashError), expect.any(CrashError)]);
    const { length } = app.logs;
    held.resolve();
    await waitFor(() => expect(answers.length).toBeGreaterThan(0));
    expect(answers[0]).toBeInstanceOf(CrashError);
    expect(app.logs).toHaveLength(length);

    app.clock.advance(33_000);
    const again = await app.fetch("/counters", { body: {}, as: ann, headers });
    expect([again.status, await amountOf(app)]).toEqual([200, 1]);
    app.faults.after("TransactWriteItems", 1).crash();
    await expect(
      app.call("counters.counter.add", {}, { as: ann, requestId: "r2" }),
    ).rejects.toBeInstanceOf(CrashError);
    const repeat = await app.ctx(ann);
    expect(repeat.requestId).toEqual(expect.any(String));
    expect(await amountOf(app)).toBe(2);
    expect(await app.call("counters.counter.add", {}, { as: ann, requestId: "r2" })).toEqual({
      added: 1,
    });
    expect(await amountOf(app)).toBe(2);
    app.faults.before("GetItem", 1).crash();
    await expect(
      app.fetch("/counters", { as: ann, signal: new AbortController().signal }),
    ).rejects.toBeInstanceOf(CrashError);
  } finally {
    held?.resolve();
    held = undefined;
    await app.close();
  }
});

test("a write with a commit takes effect once at every crash point, and all crash points are returned", async () => {
  const cuts = await crashEverywhere(server, {
    act: (app) => app.fetch("/counters", { body: {}, as: ann, headers }),
    check: async (app, answer) => {
      expect([answer.status, await amountOf(app)]).toEqual([200, 1]);
    },
  });
  expect(cuts).toEqual([
    { moment: "before", operation: "PutItem", call: 1 },
    { moment: "after", operation: "PutItem", call: 1 },
    { moment: "before", operation: "TransactWriteItems", call: 1 },
    { moment: "after", operation: "TransactWriteItems", call: 1 },
  ]);
});

test("a write that takes effect twice is detected, and the error names the crash point", async () => {
  const careless = crashEverywhere(server, {
    act: (app) => app.call("counters.counter.careless", {}, { as: ann, requestId: "r1" }),
    check: async (app) => {
      expect(await amountOf(app)).toBe(1);
    },
  });
  await expect(careless).rejects.toThrow(
    "crashEverywhere, cut after call 1 of UpdateItem: expected 2 to be 1",
  );
});

test("checks again, with an unread response, if the process crashes only during the check", async () => {
  let acts = 0;
  let checks = 0;
  const cuts = await crashEverywhere(server, {
    // Only the run without a cut waits for the write.
    act: async (app) => {
      acts += 1;
      return acts === 1
        ? app.fetch("/counters", { body: {}, as: ann, headers })
        : Response.json({ added: 1 });
    },
    check: async (app, answer) => {
      checks += 1;
      expect(await answer.json()).toEqual({ added: 1 });
      if (acts > 1) await app.call("counters.counter.add", {}, { as: ann, requestId: "r1" });
      expect(await amountOf(app)).toBe(1);
    },
  });
  expect(cuts).toHaveLength(4);
  expect([acts, checks]).toEqual([5, 9]);
});

test("rejects a scenario that fails without a crash, or makes no call", async () => {
  let attempts = 0;
  const refused = crashEverywhere(server, {
    arrange: async (app) => void (await app.fetch("/counters", { as: ann })),
    act: (app) => {
      attempts += 1;
      return app.call("counters.counter.refuse", {}, { as: ann });
    },
    check: async () => undefined,
  });
  await expect(refused).rejects.toThrow("without a cut");
  expect(attempts).toBe(5);
  const broken = crashEverywhere(server, {
    act: () => Promise.reject("no error"),
    check: async () => undefined,
  });
  await expect(broken).rejects.toThrow("without a cut: no error");
  const silent = crashEverywhere(server, {
    act: () => Promise.reject(),
    check: async () => undefined,
  });
  await expect(silent).rejects.toThrow("without a cut: undefined");
  const calm = crashEverywhere(server, {
    act: (app) => app.call("counters.counter.nothing"),
    check: async () => undefined,
  });
  await expect(calm).rejects.toThrow("does not call a store");
});

test("retries up to five attempts while the response asks for it, and checks the last one", async () => {
  const statuses: number[] = [];
  const busyUntil = (attempt: number) =>
    crashEverywhere(server, {
      arrange: async () => void statuses.splice(0),
      act: async (app) => {
        await amountOf(app);
        statuses.push(statuses.length + 1 < attempt ? 503 : 200);
        return new Response(null, { status: statuses.at(-1) ?? 0 });
      },
      check: async (_app, { status }) => expect(status).toBe(200),
    });
  await busyUntil(3);
  expect(statuses).toEqual([503, 503, 200]);
  await expect(busyUntil(9)).rejects.toThrow("without a cut: expected 503 to be 200");
  expect(statuses).toEqual([503, 503, 503, 503, 503]);
});

test("runs while a test replaces the timers", async () => {
  const words = defineFeature("words", (r) => {
    const { word } = r.config({
      keys: { word: createTenantConfig("text", { default: "hello" }) },
    });
    r.query("word.show", { handler: (ctx) => ctx.config(word) });
  });
  vi.useFakeTimers({ toFake: ["Date", "setTimeout", "setInterval"] });
  try {
    const cuts = await crashEverywhere(buildServer({ features: [words] }), {
      act: (app) => app.call("words.word.show", undefined, { as: { id: "ann", tenantId: "acme" } }),
      check: async (_app, answer) => expect(answer).toBe("hello"),
    });
    expect(cuts).not.toEqual([]);
  } finally {
    vi.useRealTimers();
  }
});
