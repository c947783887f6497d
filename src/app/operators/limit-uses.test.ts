import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { access } from "../../base/identity/access.ts";
import { createTenantConfig, createUserConfig } from "../../parts/config/declare/declaration.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import { buildServer } from "../server/server.ts";
import { type ConfigExplanation, explainConfig } from "./index.ts";

const number = { default: 3, bounds: { min: 0, max: 100 } };
const notes = defineFeature("notes", (r) => {
  const config = r.config({
    keys: {
      perDay: createTenantConfig("number", number),
      noteCount: createTenantConfig("number", number),
      atOnce: createTenantConfig("number", number),
      ofUser: createUserConfig("number", number),
      endless: createTenantConfig("number", {}),
      unused: createTenantConfig("number", number),
    },
  });
  const count = r.quota("count", { limit: config.noteCount, window: "month" });
  r.quota("seats", { limit: config.noteCount, window: "forever" });
  r.quota("fixed", { limit: 3, window: "forever" });
  const route = { access: access.everyone, handler: async () => ({}) };
  const window = "day";
  r.query("note.list", {
    route: "GET /notes",
    ...route,
    rateLimit: [
      { per: "tenant", requests: config.perDay, window },
      { per: "all", requests: config.perDay, window, name: "everyone" },
      { per: "user", requests: config.ofUser, window },
      { per: "tenant", requests: 50, window },
    ],
  });
  r.query("note.endless", {
    route: "GET /endless",
    ...route,
    rateLimit: { per: "tenant", requests: config.endless as never, window },
  });
  r.job("note.scan", {
    input: z.object({}),
    concurrency: { perTenant: config.atOnce, total: 10 },
    handler: async () => undefined,
  });
  r.write("note.add", {
    route: "POST /notes",
    access: access.everyone,
    handler: async (ctx) => {
      await count.add(ctx, 3);
      return ctx.commit([], {});
    },
  });
  r.query("note.explain", {
    route: "GET /explain",
    access: access.everyone,
    handler: (ctx) => explainConfig(ctx, config.perDay),
  });
  return { config };
});

let app: TestApp;
const { config } = notes;
beforeAll(async () => {
  const limits = { inFlightPerTenant: config.atOnce };
  app = await startTestApp(buildServer({ features: [notes], limits }));
  app.clock.advance(86_400_000 - (app.clock.now() % 86_400_000));
});
afterAll(() => app.close());

const ann = { id: "ann", tenantId: "acme" };
const day = () => new Date(app.clock.now()).toISOString().slice(0, 10);

async function limitsOf(name: string, query = "", as: object = ann): Promise<unknown> {
  const path = `/config/notes:config:${name}${query}`;
  const answer = await app.fetch(path, { as: { ...ann, roles: ["systemAdmin"], ...as } });
  return bodyOf(answer);
}

async function bodyOf(answer: Response): Promise<unknown> {
  // Safe cast: both routes answer with an explanation.
  return ((await answer.json()) as ConfigExplanation).limits;
}

test("an explanation names the limits that read a key, and what the tenant has used", async () => {
  const until = `${new Date(Date.parse(day()) + 86_400_000).toISOString().slice(0, 10)}T00:00:00.000Z`;
  const rate = { limit: "notes.note.list per-day", kind: "rate", window: "day" };
  const all = { limit: "notes.note.list everyone", kind: "rate", window: "day" };
  expect(await limitsOf("per-day")).toEqual([{ ...rate, taken: 0, limited: false, until }, all]);
  for (let request = 0; request < 3; request += 1) await app.fetch("/notes", { as: ann });
  expect(await limitsOf("per-day")).toEqual([{ ...rate, taken: 3, limited: true, until }, all]);
  // Another tenant, all tenants, and a handler that explains.
  expect(await limitsOf("per-day", "?tenantId=umbrella")).toMatchObject([{ taken: 0 }, all]);
  expect(await limitsOf("per-day", "?scope=system")).toEqual([rate, all]);
  const explained = await app.fetch("/explain", { as: ann });
  expect(await bodyOf(explained)).toEqual([{ ...rate, taken: 3, limited: true, until }, all]);

  const ofUser = { limit: "notes.note.list of-user", kind: "rate", window: "day" };
  expect(await limitsOf("of-user")).toMatchObject([{ ...ofUser, taken: 3, limited: true }]);
  expect(await limitsOf("of-user", "?scope=tenant")).toEqual([ofUser]);
});

test("a limit whose key has no value fails its requests, and pauses no other limit", async () => {
  expect((await app.fetch("/endless", { as: ann })).status).toBe(500);
  expect(app.logs.findLast(({ msg }) => msg === "request.failed")).toMatchObject({
    message: "the configuration key of its number has no value",
  });
  expect((await app.fetch("/notes", { as: ann })).status).toBe(429);
  expect(app.logs.filter(({ msg }) => msg === "rate.unavailable")).toEqual([]);
});

test("an explanation counts no more than the number, which the row may exceed", async () => {
  const as = { ...ann, roles: ["admin"] };
  const key = "/config/notes:config:per-day";
  expect((await app.fetch(key, { method: "PUT", as, body: { value: 2 } })).status).toBe(200);
  expect(await limitsOf("per-day")).toMatchObject([{ taken: 2, limited: true }, {}]);
  expect((await app.fetch(key, { method: "DELETE", as, body: {} })).status).toBe(200);
  expect(await limitsOf("per-day")).toMatchObject([{ taken: 3, limited: true }, {}]);
});

test("so does it for quotas, concurrency and requests in flight", async () => {
  expect((await app.fetch("/notes", { method: "POST", as: ann })).status).toBe(200);
  expect(await limitsOf("note-count")).toEqual([
    {
      ...{ limit: "notes.count", kind: "quota", window: "month", taken: 3, limited: true },
      until: expect.stringMatching(/-01T00:00:00.000Z$/),
    },
    { limit: "notes.seats", kind: "quota", window: "forever", taken: 0, limited: false },
  ]);
  expect(await limitsOf("note-count", "?scope=system")).toEqual([
    { limit: "notes.count", kind: "quota", window: "month" },
    { limit: "notes.seats", kind: "quota", window: "forever" },
  ]);
  expect(await limitsOf("at-once")).toEqual([
    { limit: "notes.note.scan perTenant", kind: "concurrency" },
    { limit: "server inFlightPerTenant", kind: "in-flight" },
  ]);
  expect(await limitsOf("unused")).toBeUndefined();
});

test("an explanation does without uses that cannot be read, and without a value", async () => {
  app.faults.before("GetItem", 1).fail("InternalServerError");
  const [rate] = (await limitsOf("per-day")) as readonly object[];
  expect(rate).toEqual({ limit: "notes.note.list per-day", kind: "rate", window: "day" });
  const [endless] = (await limitsOf("endless")) as readonly object[];
  expect(endless).toMatchObject({ kind: "rate", taken: 0 });
  expect(endless).not.toHaveProperty("limited");
});

test("an explanation refuses an unknown option, and a value that is not a handle", async () => {
  const ctx = await app.ctx(ann);
  const wrong = { tenantID: "globex" } as object;
  await expect(explainConfig(ctx, config.perDay, wrong)).rejects.toMatchObject({
    code: "validation_error",
    message: "explainConfig: tenantID is not known; explainConfig takes scope, tenantId, userId",
    fields: [{ field: "tenantID" }],
  });
  await expect(explainConfig(ctx, "notes:config:per-day" as never)).rejects.toThrow(
    'explainConfig: "notes:config:per-day" is not the handle of a configuration key',
  );
});
