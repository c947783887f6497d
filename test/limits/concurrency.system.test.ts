// `concurrency` of jobs and consumers, over container workers and Lambda functions on the same queues.
import { buildServer, createTenantConfig, defineFeature } from "keelson";
import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { type BothHosts, startBothHosts } from "./both-hosts.ts";

const running = new Map<string, number>();
const most = new Map<string, number>();
let done: string[] = [];

const starts: string[] = [];
let held: Promise<void> | undefined;

/** Runs that wait for one another. */
const together = Array.from({ length: 12 }, (_, index) => `together-${index}`);
let allRun = Promise.withResolvers<void>();

/** Counts the runs at a time: of each tenant, and in all. */
async function work(tenantId: string | undefined, id: string): Promise<void> {
  starts.push(`${tenantId} ${id}`);
  if (id === "held") await held;
  const counted = [`tenant ${tenantId}`, "all"];
  for (const key of counted) {
    running.set(key, (running.get(key) ?? 0) + 1);
    most.set(key, Math.max(most.get(key) ?? 0, running.get(key) ?? 0));
  }
  if (running.get("all") === together.length) allRun.resolve();
  if (together.includes(id)) await allRun.promise;
  else await new Promise((resolve) => setTimeout(resolve, 60));
  for (const key of counted) running.set(key, (running.get(key) ?? 0) - 1);
  done.push(`${tenantId} ${id}`);
}

const scans = defineFeature("scans", (r) => {
  const { scansAtOnce } = r.config({
    keys: {
      scansAtOnce: createTenantConfig("number", { default: 2, bounds: { min: 1, max: 50 } }),
    },
  });
  const concurrency = { perTenant: scansAtOnce, total: 3 };
  const sent = r.event("page.sent", z.object({ id: z.string() }));
  r.on(sent, {
    name: "print",
    concurrency: { perTenant: 1 },
    handler: (ctx, { payload }) => work(ctx.user.tenantId, payload.id),
  });
  r.write("page.send", {
    handler: async (ctx, given) => {
      for (const id of (given as { ids: readonly string[] }).ids) await ctx.publish(sent, { id });
    },
  });
  const input = z.object({ id: z.string() });
  const added = r.event("file.added", input);
  r.on(added, {
    name: "note",
    concurrency,
    handler: (ctx, { payload }) => work(ctx.user.tenantId, payload.id),
  });
  const scan = r.job("file.scan", {
    input,
    concurrency,
    handler: (ctx, { id }) => work(ctx.user.tenantId, id),
  });
  r.write("file.add", {
    handler: async (ctx, given) => {
      const { kind, ids } = given as { kind: "event" | "job"; ids: readonly string[] };
      for (const id of ids) {
        if (kind === "event") await ctx.publish(added, { id });
        else await ctx.enqueue(scan, { id });
      }
    },
  });
});

const books = defineFeature("books", (r) => {
  const concurrency = { perTenant: together.length, total: together.length };
  const input = z.object({ id: z.string() });
  const opened = r.event("book.opened", input);
  r.on(opened, {
    name: "note",
    concurrency,
    handler: (ctx, { payload }) => work(ctx.user.tenantId, payload.id),
  });
  const read = r.job("book.read", {
    input,
    concurrency,
    handler: (ctx, { id }) => work(ctx.user.tenantId, id),
  });
  r.write("book.open", {
    handler: async (ctx, given) => {
      const { kind } = given as { kind: "event" | "job" };
      for (const id of together) {
        if (kind === "event") await ctx.publish(opened, { id });
        else await ctx.enqueue(read, { id });
      }
    },
  });
});
const server = () => buildServer({ features: [scans, books], log: { level: "debug" } });

let hosts: BothHosts;
beforeEach(async () => {
  hosts = await startBothHosts(server);
});
afterEach(async () => {
  await hosts.close();
  running.clear();
  most.clear();
  done = [];
  starts.splice(0);
  allRun = Promise.withResolvers();
});

test.each(["event", "job"] as const)(
  "%ss never run more often at a time than allowed, in two containers and two functions together, and each runs once",
  async (kind) => {
    const { app } = hosts;
    await app.settled(); // makes the queues
    const ids = Array.from({ length: 6 }, (_, index) => `${index}`);
    await app.rows.put({
      scope: "tenant",
      key: "scans:config:scans-at-once",
      tenantId: "small",
      value: 1,
    });
    for (const tenantId of ["acme", "globex", "small"])
      await app.call("scans.file.add", { kind, ids }, { as: { id: "ann", tenantId } });
    const queueName =
      kind === "event"
        ? (app.env["KEELSON_EVENT_QUEUE"] ?? "keelson-events")
        : (app.env["KEELSON_JOB_QUEUE"] ?? "keelson-jobs.fifo");
    for (let copy = 0; copy < 2; copy++) {
      await hosts.startContainer();
      hosts.startFunction(queueName);
    }

    const all = ["acme", "globex", "small"].flatMap((tenant) => ids.map((id) => `${tenant} ${id}`));
    await expect.poll(() => done.length, { timeout: 240_000, interval: 50 }).toBe(all.length);
    expect(done.toSorted()).toEqual(all.toSorted());
    const limits = { "tenant acme": 2, "tenant globex": 2, "tenant small": 1, all: 3 };
    for (const [limit, number] of Object.entries(limits))
      expect(most.get(limit)).toBeLessThanOrEqual(number);
  },
);

test.each(["event", "job"] as const)(
  "%ss that arrive together all run at the same time if there are enough free slots, and none waits",
  async (kind) => {
    const { app } = hosts;
    await app.settled(); // makes the queues
    await app.call("books.book.open", { kind }, { as: { id: "ann", tenantId: "acme" } });
    const queueName = kind === "event" ? "keelson-events" : "keelson-jobs";
    for (let copy = 0; copy < 2; copy++) {
      await hosts.startContainer();
      hosts.startFunction(queueName);
    }
    try {
      await expect.poll(() => done.length).toBe(together.length);
      expect(most.get("all")).toBe(together.length);
      expect(hosts.lines(`${kind}.waiting`)).toEqual([]);
    } finally {
      allRun.resolve();
    }
  },
);

test("a tenant whose slots are all held delays no other: nine tenants run while thirty messages of another wait", async () => {
  const { app } = hosts;
  await app.settled(); // makes the queues
  const holding = Promise.withResolvers<void>();
  held = holding.promise;
  try {
    const send = (tenantId: string, ids: readonly string[]) =>
      app.call("scans.page.send", { ids }, { as: { id: "ann", tenantId } });
    await send("big", ["held"]);
    await hosts.startContainer();
    await expect.poll(() => starts).toEqual(["big held"]);
    await send(
      "big",
      Array.from({ length: 30 }, (_, n) => `${n}`),
    );
    const small = Array.from({ length: 9 }, (_, n) => `small-${n}`);
    for (const tenantId of small) await send(tenantId, ["1"]);
    const expected = ["big held", ...small.map((tenantId) => `${tenantId} 1`)];
    await expect.poll(() => starts.length).toBe(expected.length);
    expect(starts.toSorted()).toEqual(expected);
  } finally {
    holding.resolve();
  }
});
