import { expect, test } from "vitest";
import { z } from "zod";
import { defineFeature } from "../../../app/features/feature.ts";
import { buildServer, serverInternals } from "../../../app/server/server.ts";
import { CrashError, type TestApp } from "../index.ts";
import { settleWith } from "./settle.ts";
import { startWatchedApp, type WatchedAppOptions } from "./test-app.ts";

declare module "../../../base/types/names.ts" {
  interface Events {
    "task.done": { name: string };
  }
  interface Jobs {
    "tasks.task.do": { name: string; lane: string };
  }
}

let runs: string[] = [];
let held: PromiseWithResolvers<void> | undefined;
const broken = new Map<string, number>();
const tasks = defineFeature("tasks", (r) => {
  r.event("task.done", z.object({ name: z.string() }));
  r.on("task.done", {
    name: "note",
    handler: async (_ctx, { payload }) => {
      runs.push(`noted ${payload.name}`);
      if (payload.name === "broken") throw new Error("the consumer is broken");
      if (payload.name === "held") await held?.promise;
    },
  });
  r.job("task.do", {
    input: z.object({ name: z.string(), lane: z.string() }),
    order: ({ lane }) => lane,
    handler: async (ctx, { name }) => {
      runs.push(name);
      const times = broken.get(name) ?? 0;
      broken.set(name, times - 1);
      if (times > 0) throw new Error(`${name} is broken`);
      await ctx.publish("task.done", { name });
    },
  });
  r.write("task.start", {
    handler: async (ctx, input) => {
      for (const name of (input as { names: readonly string[] }).names) {
        await ctx.enqueue("tasks.task.do", { name, lane: "one" });
      }
    },
  });
});
const server = buildServer({ features: [tasks] });

async function withApp(
  work: (app: TestApp) => Promise<void>,
  options: WatchedAppOptions = {},
): Promise<void> {
  runs = [];
  broken.clear();
  const { app } = await startWatchedApp(server, options);
  try {
    await work(app);
  } finally {
    await app.close();
  }
}

test("consumes nothing before settling, which handles all messages and those that follow from them", () =>
  withApp(async (app) => {
    await app.call("tasks.task.start", { names: ["a"] });
    await expect.poll(() => app.jobs).toHaveLength(1);
    expect(runs).toEqual([]);
    await app.settled();
    expect(runs).toEqual(["a", "noted a"]);
    const [event] = app.events;
    const [job] = app.jobs;
    expect(event).toMatchObject({
      type: "task.done",
      payload: { name: "a" },
      causedBy: job?.jobId,
    });
    expect(await app.deliver(event as NonNullable<typeof event>)).toBe("skipped");
    expect(await app.deliver(job as NonNullable<typeof job>)).toBe("skipped");
    app.clock.advance(2 * 86_400_000);
    expect(await app.deliver(event as NonNullable<typeof event>)).toBe("processed");
    expect(runs).toEqual(["a", "noted a", "noted a"]);
  }));

test("a test's own ctx can publish, enqueue and commit, and settling handles what it sent", () =>
  withApp(async (app) => {
    const ctx = await app.ctx({ id: "ann", tenantId: "acme" }, { requestId: "r1" });
    await ctx.publish("task.done", { name: "one" });
    await ctx.publish("task.done", { name: "two" });
    await ctx.enqueue("tasks.task.do", { name: "job", lane: "a" });
    await ctx.delivery.send("log", { text: "sent" });
    expect(await ctx.commit([], { done: true })).toEqual({ done: true });
    expect(app.events.map(({ payload }) => payload)).toMatchObject([
      { name: "one" },
      { name: "two" },
    ]);
    expect(app.jobs).toEqual([
      expect.objectContaining({ tenantId: "acme", userId: "ann", causedBy: "r1" }),
    ]);
    expect(runs).toEqual([]);

    await app.settled();
    expect(runs.toSorted()).toEqual(["job", "noted job", "noted one", "noted two"]);
    expect(app.deliveries).toMatchObject([{ channel: "log", tenantId: "acme" }]);
    await expect(ctx.publish("task.none" as never, {} as never)).rejects.toThrow(
      "declares the event task.none",
    );
  }));

test("settling retries failed messages in order by moving the clock", () =>
  withApp(async (app) => {
    const began = app.clock.now();
    broken.set("a", 2);
    await app.call("tasks.task.start", { names: ["a", "b"] });
    await app.settled();
    expect(runs.filter((name) => !name.startsWith("noted"))).toEqual(["a", "a", "a", "b"]);
    expect(app.clock.now() - began).toBeGreaterThan(6_000);
  }));

test("settling throws once for a dead-lettered message and names it", () =>
  withApp(async (app) => {
    broken.set("a", 99);
    await app.call("tasks.task.start", { names: ["a", "b"] });
    await expect(app.settled()).rejects.toThrow('in the dead-letter queue: {"jobId":');
    expect(runs.filter((name) => name === "a")).toHaveLength(5);
    expect(runs).toContain("b");
    const lines = app.logs.filter(({ msg }) => msg === "queue.dead_lettered");
    expect(lines).toEqual([
      expect.objectContaining({ reason: "a is broken", job: "tasks.task.do", receives: 5 }),
    ]);
    await app.settled();
  }));

test("settling throws if it does not come to an end, and names the remaining work", () =>
  withApp(
    async (app) => {
      await app.call("tasks.task.start", { names: ["a"] });
      for (let call = 1; call <= 200; call += 1)
        app.faults.before("PutEvents", call).fail("InternalException");
      await expect(app.settled()).rejects.toThrow(
        "app.settled: 1 are left in schedules, outbox and queues: nothing that came to this process",
      );
    },
    { maxSteps: 5 }, // a step takes a tenth of a second where the bus fails
  ));

test("delivering distinguishes a message that is handed back from one that fails", () =>
  withApp(async (app) => {
    const event = {
      kind: "shared",
      type: "task.done",
      causedBy: "r1",
      origRequestId: "r1",
      tenantId: "acme",
    } as const;
    await expect(
      app.deliver({ ...event, eventId: "e1", payload: { name: "broken" } }),
    ).rejects.toThrow("the consumer is broken");
    held = Promise.withResolvers();
    const holding = { ...event, eventId: "e2", payload: { name: "held" } };
    const first = app.deliver(holding);
    await expect.poll(() => runs).toContain("noted held");
    app.faults.before("PutItem", 1).crash();
    // The process that holds it is gone, and its claim is not.
    await expect(
      app.deliver({ ...event, eventId: "e3", payload: { name: "x" } }),
    ).rejects.toBeInstanceOf(CrashError);
    await expect(first).rejects.toBeInstanceOf(CrashError);
    held.resolve();
    held = undefined;
    expect(await app.deliver(holding)).toBe("handed-back");
    app.clock.advance(33_000);
    expect(await app.deliver(holding)).toBe("processed");
  }));

test("sweeps the outbox once while messages wait, and again when another process has taken them", async () => {
  const { registry } = serverInternals(server);
  let sweeps = 0;
  let waits = 3;
  const sweep = async () => {
    sweeps += 1;
    return { dispatched: 0, left: 0, setAside: 0 };
  };
  // Safe cast: settling uses nothing else of a process.
  const process = {
    runtime: { server: { registry }, runs: { open: async () => ({ outbox: { sweep } }) } },
  } as unknown as Parameters<typeof settleWith>[0];
  await settleWith(process, {
    sinceMs: 0,
    looked: () => undefined,
    work: async () => 0,
    waiting: async () => waits,
    rest: async () => {
      expect(sweeps).toBe(1);
      waits -= 1;
    },
  });
  expect(sweeps).toBe(2);
});
