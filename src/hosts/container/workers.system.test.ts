import { GetQueueUrlCommand, SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { Consumer } from "sqs-consumer";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { defineFeature, type Feature } from "../../app/features/feature.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { createRuntime } from "../../app/server/create-runtime.ts";
import { buildServer } from "../../app/server/server.ts";
import { endPolls } from "../../embedded/queues/long-polls.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import type { ContainerWork } from "../container-http/http-options.ts";
import { openChecked } from "./adapters.ts";
import { beginLife } from "./process-life.ts";
import { startWorkers, type Workers } from "./workers.ts";

declare module "../../base/types/names.ts" {
  interface Events {
    "load.sent": { name: string };
  }
  interface Jobs {
    "loads.load.carry": { name: string; lane: string };
  }
}

let runs: string[] = [];
let held: PromiseWithResolvers<void> | undefined;
let aheadMs = 0;
const broken = new Set<string>();
const loads = defineFeature("loads", (r) => {
  r.event("load.sent", z.object({ name: z.string() }));
  r.on("load.sent", {
    name: "note",
    handler: async (_ctx, { payload }) => {
      runs.push(`event ${payload.name}`);
      if (broken.delete(payload.name)) throw new Error("broken once");
    },
  });
  r.job("load.carry", {
    input: z.object({ name: z.string(), lane: z.string() }),
    order: ({ lane }) => lane,
    handler: async (_ctx, { name }) => {
      runs.push(name);
      if (name.startsWith("held")) await held?.promise;
      if (broken.delete(name)) throw new Error("broken once");
    },
  });
  r.write("load.send", {
    handler: async (ctx, input) => {
      const { names, lane } = input as { names: readonly string[]; lane: string };
      for (const name of names) {
        if (lane === "event") await ctx.publish("load.sent", { name });
        else await ctx.enqueue("loads.load.carry", { name, lane });
      }
    },
  });
});

let app: TestApp;
let runtime: Runtime | undefined;
let workers: Workers | undefined;
const logs: Record<string, unknown>[] = [];
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [loads] }));
});
afterAll(() => app.close());
afterEach(async () => {
  held?.resolve();
  held = undefined;
  workers?.stop();
  await workers?.finished();
  await runtime?.close();
  runs = [];
  aheadMs = 0;
  logs.splice(0);
});

interface StartOptions {
  readonly works?: readonly ContainerWork[];
  /** Whether the process is told to stop while its workers start. */
  readonly drains?: boolean;
  readonly features?: readonly Feature[];
  readonly environment?: "test" | "production";
  readonly sweepMs?: number;
  readonly isWatched?: boolean;
}

/** Another process on the same queues, which works on them. */
async function start({
  works = ["workers"],
  drains = false,
  features = [loads],
  environment = "test",
  sweepMs = 10_000,
  isWatched = false,
}: StartOptions = {}) {
  const variables = app.env;
  const server = buildServer({ features, environment });
  runtime = createRuntime(server, {
    variables: { ...variables, LOG_LEVEL: "debug", ...(isWatched ? { KEELSON_WATCH: "1" } : {}) },
    clock: { now: () => Date.now() + aheadMs },
    write: (line) => void logs.push(JSON.parse(line) as Record<string, unknown>),
    openAdapters: async (bound) => ({
      ...(await openChecked(bound, variables, "create")),
      endPolls,
    }),
  });
  const starting = startWorkers(runtime, new Set(works), sweepMs);
  if (drains) runtime.lifecycle.drain();
  workers = await starting;
  return { runtime, workers };
}

const send = (names: readonly string[], lane: string) =>
  app.call("loads.load.send", { names, lane });

describe("the workers of a container", () => {
  test("consume events and run jobs until they are stopped", async () => {
    await start();
    await send(["a"], "event");
    await send(["b"], "free");
    await expect.poll(() => runs.toSorted()).toEqual(["b", "event a"]);
    workers?.stop();
    await workers?.finished();
    await send(["c"], "free");
    await app.settled(); // the stopped ones leave it to others
    expect(runs.filter((name) => name === "c")).toHaveLength(1);
  });

  test("keep the order of a lane when a job fails, and let other lanes overtake it", async () => {
    broken.add("1");
    await send(["1", "2", "3"], "lane");
    await send(["other"], "other lane");
    await start();
    await expect.poll(() => runs.filter((name) => name !== "other")).toEqual(["1", "1", "2", "3"]);
    expect(runs).toContain("other");
  });

  test("do not let a failed message of a fair queue hold up others of its group", async () => {
    broken.add("1");
    const { AWS_ENDPOINT_URL: endpoint = "", KEELSON_EVENT_QUEUE: QueueName = "keelson-events" } =
      app.env;
    const sqs = new SQSClient({
      endpoint,
      region: "us-east-1",
      credentials: { accessKeyId: "test", secretAccessKey: "test" },
    });
    await app.settled(); // makes the queues
    const { QueueUrl } = await sqs.send(new GetQueueUrlCommand({ QueueName }));
    for (const name of ["1", "2"]) {
      const cause = { causedBy: "r1", origRequestId: "r1", tenantId: "acme" };
      const body = {
        kind: "shared",
        type: "load.sent",
        eventId: `fair-${name}`,
        payload: { name, requestId: "r1" },
        ...cause,
      };
      await sqs.send(
        new SendMessageCommand({
          QueueUrl,
          MessageBody: JSON.stringify(body),
          MessageGroupId: "acme",
        }),
      );
    }
    sqs.destroy();
    await start();
    // A standard queue promises no order, so "event 2" may run first; only the retry comes last.
    await expect.poll(() => runs).toHaveLength(3);
    expect(runs.slice(0, 2).toSorted()).toEqual(["event 1", "event 2"]);
    expect(runs[2]).toBe("event 1");
  });

  test("finish their current job before they stop, and log it when it takes too long", async () => {
    held = Promise.withResolvers();
    const { runtime: bound, workers: running } = await start();
    await send(["held"], "free");
    await expect.poll(() => runs).toEqual(["held"]);
    const life = beginLife(bound, { lingerMs: 0, drainMs: 0, totalMs: 100 });
    life.workers = running;
    life.tell({ type: "started" });
    life.tell({ type: "terminate" });
    expect(await life.ended).toBe(1);
    const [{ jobId = "none", origRequestId = "none" } = {}] = app.jobs.slice(-1);
    const cut = [expect.objectContaining({ handler: "loads.load.carry", jobId, origRequestId })];
    expect(logs).toContainEqual(
      expect.objectContaining({ msg: "shutdown.workers_cut_off", messages: cut, count: 1 }),
    );
    expect(logs).toContainEqual(
      expect.objectContaining({ msg: "shutdown.completed", cutOffMessages: cut }),
    );
    held.resolve();
    await running.finished();
    expect(logs).toContainEqual(
      expect.objectContaining({ msg: "job.completed", handler: "loads.load.carry" }),
    );
  });

  // A poll of the embedded queue can be ended; one of LocalStack's cannot.
  const isEmbedded = process.env["KEELSON_TEST_ENDPOINT"] === undefined;
  if (isEmbedded)
    test("do not wait for an idle poll when stopped, and leave later messages to others", async () => {
      let leastMs = Number.POSITIVE_INFINITY;
      for (let attempt = 1; attempt <= 3 && leastMs >= 2_500; attempt += 1) {
        const { workers: running } = await start({ environment: "production" });
        await send(["polled"], "free");
        await expect.poll(() => runs).toHaveLength(attempt);
        const beganMs = performance.now();
        running.stop();
        await running.finished();
        leastMs = Math.min(leastMs, performance.now() - beganMs);
      }
      expect(leastMs).toBeLessThan(2_500); // a poll waits 3 s there, but a busy machine may be as slow
      await send(["unpolled"], "free");
      await app.settled();
      expect(runs.filter((name) => name !== "polled")).toEqual(["unpolled"]);
    });

  test("stop quickly when the next process waits, and leave the outbox to it", async () => {
    app.faults.before("PutEvents", 1).fail("InternalException");
    await send(["left behind"], "event");
    const { workers: running } = await start({ isWatched: true });
    running.stop();
    aheadMs = app.clock.now() - Date.now() + 2_000;
    await running.finished();
    expect(logs.map(({ msg }) => msg)).not.toContain("outbox.swept");
    await app.settled();
  });

  test("sweep the outbox one last time when stopped", async () => {
    app.faults.before("PutEvents", 1).fail("InternalException");
    await send(["left"], "event");
    const { workers: running } = await start();
    running.stop();
    aheadMs = app.clock.now() - Date.now() + 2_000; // the row has to be older than a second
    await running.finished();
    expect(logs).toContainEqual(expect.objectContaining({ msg: "outbox.swept", dispatched: 1 }));
    await app.settled();
  });

  test("sweep the outbox regularly, even after a failed sweep", async () => {
    const { runtime: bound } = await start({ sweepMs: 50 });
    const { database } = await bound.adapters.open();
    database.middlewareStack.add(
      (next, context) => (parameters) =>
        context["commandName"] === "QueryCommand"
          ? Promise.reject(new Error("no reading"))
          : next(parameters),
      { step: "initialize", name: "unreadable" },
    );
    const isSaid = () =>
      logs.some(
        ({ msg, reason }) => msg === "outbox.sweep_failed" && String(reason).includes("no reading"),
      );
    await expect.poll(isSaid).toBe(true);
    database.middlewareStack.remove("unreadable");
    aheadMs = app.clock.now() - Date.now() + 11_000;
    app.faults.before("PutEvents", 1).fail("InternalException");
    await send(["swept"], "event");
    await expect.poll(() => runs).toEqual(["event swept"]);
    await expect
      .poll(() => logs)
      .toContainEqual(expect.objectContaining({ msg: "outbox.swept", dispatched: 1 }));
  });

  test("run the jobs of a server without events, in production too", async () => {
    const done: string[] = [];
    const errands = defineFeature("loads", (r) => {
      r.job("load.carry", {
        input: z.object({ name: z.string(), lane: z.string() }),
        handler: async (_ctx, { name }) => void done.push(name),
      });
    });
    await start({ features: [errands], environment: "production" });
    await send(["errand"], "free");
    await expect.poll(() => done).toEqual(["errand"]);
  });

  test("receive the events of others for a server without messages of its own", async () => {
    const seen: string[] = [];
    const sales = defineFeature("sales", (r) => {
      r.receive("sale.made", {
        source: "shop",
        detailType: "Order Placed",
        input: z.object({ name: z.string() }),
        handler: (_ctx, { detail }) => void seen.push(detail.name),
      });
    });
    const { runtime: bound } = await start({ features: [sales] });
    const { others } = await (await bound.adapters.open()).messaging.open();
    const event = {
      id: "1",
      source: "shop",
      "detail-type": "Order Placed",
      detail: { name: "tea" },
    };
    await others.sendLater(JSON.stringify(event), undefined, 0);
    await expect.poll(() => seen).toEqual(["tea"]);
  });

  test("log a queue that cannot be reached, and continue once it can", async () => {
    const server = await start();
    const { sqs } = await (await server.runtime.adapters.open()).messaging.open();
    sqs.middlewareStack.add(
      () => async () => {
        throw Object.assign(new Error("out of order"), { name: "ServiceUnavailable" });
      },
      { step: "initialize", name: "outOfOrder" },
    );
    await expect
      .poll(
        () =>
          logs.filter(
            ({ msg, reason }) =>
              msg === "queue.receive_failed" && String(reason).includes("out of order"),
          ).length,
        {
          timeout: 60_000,
        },
      )
      .toBeGreaterThan(0);
    sqs.middlewareStack.remove("outOfOrder");
    await send(["after"], "free");
    await expect.poll(() => runs).toEqual(["after"]);
  });

  test("keep a long-running message hidden until it is done", async () => {
    held = Promise.withResolvers();
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      const { runtime: bound } = await start();
      const { sqs } = await (await bound.adapters.open()).messaging.open();
      const hidden: unknown[] = [];
      sqs.middlewareStack.add(
        (next, context) => (parameters) => {
          if (context["commandName"] === "ChangeMessageVisibilityCommand")
            hidden.push(parameters.input);
          return next(parameters);
        },
        { step: "initialize", name: "watch" },
      );
      await send(["held for long"], "free");
      await expect.poll(() => runs).toEqual(["held for long"]);
      await vi.advanceTimersByTimeAsync(20_000);
      expect(hidden).toEqual([
        expect.objectContaining({ VisibilityTimeout: 30 }),
        expect.objectContaining({ VisibilityTimeout: 30 }),
      ]);
      held.resolve();
      await expect.poll(() => logs.some(({ msg }) => msg === "job.completed")).toBe(true);
      const { jobs } = await (await bound.adapters.open()).messaging.open();
      await expect.poll(() => jobs.size()).toEqual({ visible: 0, hidden: 0 });
      await vi.advanceTimersByTimeAsync(20_000);
      expect(hidden).toHaveLength(2);
    } finally {
      vi.useRealTimers();
    }
  });

  test("log a message that cannot be acknowledged, and skip it when it comes again", async () => {
    const { runtime: bound } = await start();
    const { sqs, jobs } = await (await bound.adapters.open()).messaging.open();
    sqs.middlewareStack.add(
      (next, context) => (parameters) =>
        context["commandName"] === "DeleteMessageCommand"
          ? Promise.reject(new Error("no acknowledging"))
          : next(parameters),
      { step: "initialize", name: "unacknowledged" },
    );
    await send(["once"], "free");
    const isSaid = () =>
      logs.some(
        ({ msg, reason }) =>
          msg === "queue.acknowledge_failed" && String(reason).includes("no ack"),
      );
    await expect.poll(isSaid).toBe(true);
    workers?.stop();
    await workers?.finished();
    sqs.middlewareStack.remove("unacknowledged");
    await app.settled();
    expect(await jobs.size()).toEqual({ visible: 0, hidden: 0 });
    expect(runs).toEqual(["once"]);
  });

  test("hand back at once the messages of their last poll", async () => {
    const { runtime: bound, workers: running } = await start();
    const { sqs } = await (await bound.adapters.open()).messaging.open();
    const polling = Promise.withResolvers<void>();
    const given = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    sqs.middlewareStack.add(
      (next, context) => async (parameters) => {
        polling.resolve();
        const output = await next(parameters);
        const { Messages } = output.output as { readonly Messages?: readonly unknown[] };
        if (context["commandName"] !== "ReceiveMessageCommand" || Messages === undefined)
          return output;
        given.resolve();
        await goOn.promise;
        return output;
      },
      { step: "initialize", name: "slow" },
    );
    await polling.promise; // the one before has not seen this
    await send(["given"], "free");
    await given.promise;
    running.stop();
    goOn.resolve();
    await running.finished();
    expect(runs).toEqual([]);
    const began = app.clock.now();
    await app.settled();
    expect(runs).toEqual(["given"]);
    expect(app.clock.now() - began).toBeLessThan(30_000);
  });

  test("ask for no messages once they are stopped, even if a job then ends", async () => {
    held = Promise.withResolvers();
    const { runtime: bound, workers: running } = await start();
    const { sqs } = await (await bound.adapters.open()).messaging.open();
    const names = Array.from({ length: 10 }, (_, index) => `held ${index}`);
    for (const name of names) await send([name], name);
    await expect.poll(() => runs.toSorted()).toEqual(names);
    let isStopped = false;
    let receivedAfter = 0;
    sqs.middlewareStack.add(
      (next, context) => (parameters) => {
        if (context["commandName"] === "ReceiveMessageCommand" && isStopped) receivedAfter += 1;
        return next(parameters);
      },
      { step: "initialize", name: "counted" },
    );
    isStopped = true;
    running.stop();
    held.resolve();
    await running.finished();
    expect(receivedAfter).toBe(0);
    expect(logs.map(({ msg }) => msg)).not.toContain("queue.receive_failed");
  });

  test("take no message if one of them cannot start", async () => {
    const { runtime: bound } = await start();
    const { events, received } = await (await bound.adapters.open()).messaging.open();
    expect(received).not.toContain(events);
    const url = vi.spyOn(events, "url").mockRejectedValue(new Error("no such queue"));
    const begin = vi.spyOn(Consumer.prototype, "start");
    try {
      await expect(startWorkers(bound, new Set(["workers"]))).rejects.toThrow("no such queue");
      expect(begin).not.toHaveBeenCalled();
    } finally {
      url.mockRestore();
      begin.mockRestore();
    }
  });

  test("fire no schedule and take no message if the process stops while they start", async () => {
    let fires = 0;
    const clocks = defineFeature("clocks", (r) => {
      r.schedule("clock.strike", { cron: "* * * * *", handler: () => void fires++ });
    });
    const given = {
      features: [loads, clocks],
      works: ["workers", "schedules"],
    } satisfies StartOptions;
    const end = async () => {
      workers?.stop();
      await workers?.finished();
    };
    await start(given);
    await end(); // the schedule is known now
    fires = 0;
    await runtime?.close();
    aheadMs = 120_000;
    const consume = vi.spyOn(Consumer.prototype, "start");
    try {
      await start({ ...given, drains: true });
      await end();
      expect(consume).not.toHaveBeenCalled();
      expect(fires).toBe(0);
    } finally {
      consume.mockRestore();
    }
    await runtime?.close();
    await start(given);
    await expect.poll(() => fires).toBe(1); // it was due
  });

  test("do nothing for a server without events and jobs", async () => {
    const plain = defineFeature("plain", () => {});
    const { workers: none } = await start({ features: [plain] });
    none.stop();
    await none.finished();
  });
});
