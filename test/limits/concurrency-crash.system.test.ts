// `concurrency` when a process crashes, at each of its calls.
import { buildServer, defineFeature } from "keelson";
import { crashEverywhere, type TestApp } from "keelson/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { MustWaitError } from "../../src/parts/limits/must-wait.ts";

/** Runs at the same time. A new object for each process: a run of one that has crashed may still end. */
let runs = { now: 0 };
let most = 0;
let done: string[] = [];

const scans = defineFeature("scans", (r) => {
  const input = z.object({ id: z.string() });
  const added = r.event("file.added", input);
  r.on(added, {
    name: "scan",
    concurrency: { perTenant: 1, total: 1 },
    handler: async (ctx, { payload }) => {
      const own = runs;
      own.now += 1;
      most = Math.max(most, own.now);
      try {
        done.push(payload.id);
        await ctx.commit([], {});
      } finally {
        own.now -= 1;
      }
    },
  });
  r.write("file.add", {
    handler: async (ctx) => {
      for (const id of ["a", "b"]) await ctx.publish(added, { id });
    },
  });
});

test("wherever a process crashes, its slot is free in the end, and every event is handled", async () => {
  const cuts = await crashEverywhere(buildServer({ features: [scans] }), {
    arrange: async (app: TestApp) => {
      [runs, most, done] = [{ now: 0 }, 0, []];
      await app.call("scans.file.add", {}, { as: { id: "ann", tenantId: "acme" } });
    },
    act: (app) => {
      runs = { now: 0 };
      return app.settled();
    },
    check: async (app) => {
      expect(new Set(done)).toEqual(new Set(["a", "b"]));
      expect(most).toBe(1);
      // Nothing is left, and nothing was given up.
      await app.settled();
      expect(app.logs.filter(({ msg }) => msg === "queue.dead_lettered")).toEqual([]);
    },
  });
  // Slots are taken and given back by updates.
  expect(cuts.map(({ moment, operation }) => `${moment} ${operation}`)).toEqual(
    expect.arrayContaining(["before PutItem", "after PutItem", "after UpdateItem"]),
  );
}, 900_000);

const ordered = defineFeature("ordered", (r) => {
  const scan = r.job("file.scan", {
    input: z.object({ id: z.string() }),
    order: () => "all",
    concurrency: { perTenant: 1 },
    handler: async (ctx, { id }) => {
      if (id === "a" && isFull) throw new MustWaitError("perTenant");
      if (!done.includes(id)) done.push(id);
      await ctx.commit([], {});
    },
  });
  r.write("file.add", {
    handler: async (ctx) => {
      for (const id of ["a", "b", "c"]) await ctx.enqueue(scan, { id });
    },
  });
});
let isFull = true;

test("wherever a process crashes, jobs with an order that wait are done in their order", async () => {
  const cuts = await crashEverywhere(buildServer({ features: [ordered] }), {
    arrange: async (app: TestApp) => {
      [done, isFull] = [[], true];
      await app.call("ordered.file.add", {}, { as: { id: "ann", tenantId: "acme" } });
    },
    act: async (app) => {
      isFull = true;
      await app.settled();
      // The slot becomes free. The rounds end once the jobs are done, because idle ones add only crash points.
      isFull = false;
      for (let round = 0; round < 3 && done.length < 3; round += 1) {
        app.clock.advance(80_000);
        await app.settled();
      }
    },
    check: async (app) => {
      expect(done).toEqual(["a", "b", "c"]);
      expect(app.logs.filter(({ msg }) => msg === "queue.dead_lettered")).toEqual([]);
    },
  });
  expect(cuts.map(({ moment, operation }) => `${moment} ${operation}`)).toEqual(
    expect.arrayContaining(["before TransactWriteItems", "after TransactWriteItems"]),
  );
}, 900_000);
