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
  r.job("sms.send", {
    input: z.object({ to: z.string() }),
    handler: async ({ rateLimit }, { to }) => {
      await rateLimit.take(sms);
      sent.push(to);
    },
  });
  r.job("sms.refuse", {
    input: z.object({}),
    handler: async () => {
      throw new FrameworkError("too_many_requests", "later", { headers });
    },
  });
});

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [texts] }));
});
afterAll(() => app.close());

test("a job that a limit refuses gets its message again when the window has ended, and has not failed", async () => {
  const ctx = await app.ctx({ id: "ann", tenantId: "acme", roles: [] });
  for (const to of ["a", "b", "c", "d", "e"])
    await ctx.enqueue("texts.sms.send" as never, { to } as never);
  const startMs = app.clock.now();
  await app.settled();
  expect(sent.toSorted()).toEqual(["a", "b", "c", "d", "e"]);
  expect(app.clock.now() - startMs).toBeGreaterThan(60_000);
  expect(app.logs.filter(({ msg }) => msg === "job.failed")).toEqual([]);
  expect(app.logs.filter(({ msg }) => msg === "job.limited").length).toBeGreaterThanOrEqual(3);
});

test("such an error without a time to wait is a failure", async () => {
  const ctx = await app.ctx({ id: "ann", tenantId: "acme", roles: [] });
  await ctx.enqueue("texts.sms.refuse" as never, {} as never);
  await expect(app.settled()).rejects.toThrow();
  expect(app.logs.some(({ msg }) => msg === "job.failed")).toBe(true);
});
