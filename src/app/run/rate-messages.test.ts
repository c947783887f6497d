import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { FrameworkError } from "../../base/errors/errors.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import { buildServer } from "../server/server.ts";

const sent: string[] = [];
const headers: Record<string, string> = {};
const texts = defineFeature("texts", (r) => {
  const sms = r.rateLimit("sms", { per: "tenant", requests: 2, window: "minute" });
  const input = z.object({ to: z.string() });
  r.job("sms.send", {
    input,
    handler: async ({ rateLimit }, { to }) => {
      await rateLimit.take(sms);
      sent.push(to);
    },
  });
  const hourly = r.rateLimit("hourly", { per: "tenant", requests: 1, window: "hour" });
  r.job("sms.count", {
    input,
    order: () => "one after the other",
    handler: async ({ rateLimit }, { to }) => {
      await rateLimit.take(hourly);
      sent.push(to);
    },
  });
  const added = r.event("text.added", input);
  r.on(added, {
    name: "announce",
    handler: async ({ rateLimit }, { payload }) => {
      await rateLimit.take(sms);
      sent.push(payload.to);
    },
  });
  r.on(added, {
    name: "note",
    handler: (_ctx, { payload }) => void sent.push(`note ${payload.to}`),
  });
  r.write("text.add", {
    handler: async (ctx, given) => {
      for (const to of given as readonly string[]) await ctx.publish(added, { to });
    },
  });
  r.job("sms.refuse", {
    input: z.object({}),
    handler: async () => {
      throw new FrameworkError("too_many_requests", "later", { headers });
    },
  });
});

const ann = { id: "ann", tenantId: "acme", roles: [] };
const numbered = (count: number) => Array.from({ length: count }, (_, index) => `${index + 10}`);

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [texts] }));
});
afterAll(() => app.close());

const lines = (msg: string) => app.logs.filter((line) => line["msg"] === msg);

async function enqueue(name: string, payloads: readonly string[]): Promise<void> {
  const ctx = await app.ctx(ann);
  for (const to of payloads) await ctx.enqueue(`texts.${name}` as never, { to } as never);
}

test("a job that a limit refuses in eight windows is neither failed nor dead-lettered, and runs once", async () => {
  const startMs = app.clock.now();
  await enqueue("sms.send", numbered(16));
  await app.settled();
  expect(app.clock.now() - startMs).toBeGreaterThan(6 * 60_000);
  expect(sent.splice(0).toSorted()).toEqual(numbered(16));
  expect(lines("job.limited").length).toBeGreaterThan(14);
  expect(lines("job.limited")[0]).toMatchObject({ level: "info", afterMs: expect.any(Number) });
  for (const msg of ["job.failed", "queue.retry", "queue.dead_lettered"])
    expect(lines(msg)).toEqual([]);
});

test("so is an event, whose other consumers run once", async () => {
  await app.call("texts.text.add", numbered(16) as never, { as: ann });
  await app.settled();
  const notes = numbered(16).map((to) => `note ${to}`);
  expect(sent.splice(0).toSorted()).toEqual([...numbered(16), ...notes]);
  expect(lines("event.limited").length).toBeGreaterThan(14);
  for (const msg of ["event.failed", "queue.retry", "queue.dead_lettered"])
    expect(lines(msg)).toEqual([]);
});

test("jobs with an order keep it, in more windows than their queue has receives", async () => {
  await enqueue("sms.count", numbered(8));
  for (let windows = 0; sent.length < 8; windows += 1) {
    expect(windows).toBeLessThan(20);
    await app.settled().catch(() => undefined); // it gives up after ten minutes
    app.clock.advance(3_600_000);
  }
  expect(sent.splice(0)).toEqual(numbered(8));
  expect(lines("queue.order_lost")).toEqual([]);
});

test("such an error without a time to wait is a failure", async () => {
  const ctx = await app.ctx(ann);
  await ctx.enqueue("texts.sms.refuse" as never, {} as never);
  await expect(app.settled()).rejects.toThrow();
  expect(lines("job.failed").length).toBeGreaterThan(0);
});
