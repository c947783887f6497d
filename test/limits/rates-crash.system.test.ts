// Messages that `ctx.rateLimit` refuses when a process crashes, at each of its calls.
import { buildServer, defineFeature } from "keelson";
import { crashEverywhere, type TestApp } from "keelson/testing";
import { expect, test } from "vitest";
import { z } from "zod";

let started: string[] = [];
let taken: string[] = [];

const texts = defineFeature("texts", (r) => {
  const sms = r.rateLimit("sms", { per: "tenant", requests: 9, window: "second" });
  const added = r.event("text.added", z.object({ id: z.string() }));
  r.on(added, {
    name: "announce",
    handler: async (ctx, { payload: { id } }) => {
      started.push(id);
      // More than a window has, and then less.
      await ctx.rateLimit.take(sms, started.filter((one) => one === id).length === 1 ? 10 : 1);
      taken.push(id);
      await ctx.commit([], {});
    },
  });
  r.write("text.add", {
    handler: async (ctx) => {
      for (const id of ["a", "b"]) await ctx.publish(added, { id });
    },
  });
});

test("wherever a process crashes, a refused message is handled in a later window, and no attempt fails", async () => {
  const cuts = await crashEverywhere(buildServer({ features: [texts] }), {
    arrange: async (app: TestApp) => {
      [started, taken] = [[], []];
      await app.call("texts.text.add", {}, { as: { id: "ann", tenantId: "acme" } });
    },
    act: (app) => app.settled(),
    check: async (app) => {
      expect(new Set(taken)).toEqual(new Set(["a", "b"]));
      expect(app.logs.some(({ msg }) => msg === "event.limited")).toBe(true);
      expect(app.logs.filter(({ msg }) => msg === "queue.dead_lettered")).toEqual([]);
    },
  });
  // Between these, a message exists twice.
  expect(cuts.map(({ moment, operation }) => `${moment} ${operation}`)).toEqual(
    expect.arrayContaining(["before SendMessage", "after SendMessage", "before DeleteMessage"]),
  );
});
