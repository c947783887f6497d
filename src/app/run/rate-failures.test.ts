import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { NotFoundError } from "../../base/errors/errors.ts";
import { access } from "../../base/identity/access.ts";
import { createTenantConfig } from "../../parts/config/declare/declaration.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import { buildServer } from "../server/server.ts";

const everyone = { access: access.everyone };
const notes = defineFeature("notes", (r) => {
  const { number } = r.config({ keys: { number: createTenantConfig("number", { default: 1 }) } });
  const open = r.rateLimit("open", { per: "all", requests: 1, window: "hour" });
  const shut = r.rateLimit("shut", {
    ...{ per: "all", requests: number, window: "hour" },
    onFailure: "shut",
  });
  const limited = { per: "tenant", requests: 1, window: "hour" } as const;
  const handler = async () => ({});
  r.query("note.open", { route: "GET /open", ...everyone, rateLimit: limited, handler });
  r.query("note.shut", {
    route: "GET /shut",
    ...everyone,
    rateLimit: { ...limited, onFailure: "shut" },
    handler,
  });
  r.query("note.key", {
    route: "GET /key",
    ...everyone,
    rateLimit: { ...limited, requests: number },
    handler,
  });
  r.query("note.both", {
    route: "GET /both",
    ...everyone,
    rateLimit: [
      { per: "all", requests: 2, window: "hour", name: "held" },
      { per: "all", requests: number, window: "hour", onFailure: "shut" },
    ],
    handler,
  });
  r.query("note.thrown", {
    route: "GET /thrown",
    ...everyone,
    rateLimit: [
      { per: "ip", requests: 1, window: "hour", name: "by-address" },
      {
        per: () => {
          throw new NotFoundError("team", "red");
        },
        requests: 5,
        window: "hour",
        name: "by-team",
      },
    ],
    handler,
  });
  r.query("code.open", { handler: async ({ rateLimit }) => rateLimit.take(open) });
  r.query("code.shut", { handler: async ({ rateLimit }) => rateLimit.tryTake(shut) });
});

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [notes] }));
});
afterAll(() => app.close());
beforeEach(() => app.clock.advance(3_600_000));

const failing = (operation = "UpdateItem") =>
  app.faults.before(operation, 1).fail("ValidationException");
const lines = () => app.logs.filter(({ msg }) => msg === "rate.unavailable");

test("while the store fails, an open limit lets requests through and logs one line per outage", async () => {
  const before = lines().length;
  failing();
  const admitted = await app.fetch("/open");
  expect([admitted.status, admitted.headers.get("ratelimit")]).toEqual([200, null]);
  expect((await app.fetch("/open")).status).toBe(200); // without a call
  app.clock.advance(1_000);
  expect((await app.fetch("/open")).headers.get("ratelimit")).toMatch(/^"tenant-hour";r=0;t=/);
  expect(lines().slice(before)).toMatchObject([
    { level: "error", limit: "notes.note.open tenant-hour", requests: "admitted" },
  ]);
  // Of another limit, whose callers work, nothing ends this outage.
  failing();
  await app.fetch("/key");
  app.clock.advance(1_000);
  await app.fetch("/open", { as: { id: "ann", tenantId: "acme", roles: [] } });
  failing();
  await app.fetch("/key", { as: { id: "ann", tenantId: "acme", roles: [] } });
  expect(lines().slice(before)).toHaveLength(2);
  app.clock.advance(61_000);
  failing();
  await app.fetch("/key", { as: { id: "ben", tenantId: "hooli", roles: [] } });
  expect(lines().slice(before)).toHaveLength(3);
  app.clock.advance(1_000);
});

test("while the store fails, a limit that shuts answers 503 with the seconds to wait", async () => {
  failing();
  const refused = await app.fetch("/shut");
  expect(lines().at(-1)).toMatchObject({
    limit: "notes.note.shut tenant-hour",
    requests: "refused",
  });
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(await refused.json()).toMatchObject({
    error: "overloaded",
    message: "The limit tenant-hour cannot be checked at the moment",
  });
  app.clock.advance(1_000);
  expect((await app.fetch("/shut")).status).toBe(200);
  expect((await app.fetch("/shut")).status).toBe(429);
});

test("a request that fails, because a limit shuts, counts for none of its limits", async () => {
  await app.fetch("/both");
  app.clock.advance(3_600_000);
  expect((await app.fetch("/both")).headers.get("ratelimit")).toMatch(/^"held";r=1;/);
  const refused = await app.fetch("/both");
  expect(refused.status).toBe(429); // `number` is 1
  app.clock.advance(3_600_000);
  app.faults.before("UpdateItem", 2).fail("ValidationException");
  const shut = await app.fetch("/both");
  expect([shut.status, shut.headers.get("ratelimit")]).toEqual([
    503,
    expect.stringMatching(/^"held";r=2;/),
  ]);
  app.clock.advance(1_000);
  expect((await app.fetch("/both")).headers.get("ratelimit")).toMatch(/"held";r=1;/);
});

test("a request whose `per` throws counts for its other limits", async () => {
  expect((await app.fetch("/thrown")).status).toBe(404);
  expect((await app.fetch("/thrown")).status).toBe(429);
});

test("a number that cannot be read is a failure of the store as well", async () => {
  app.clock.advance(3_600_000);
  failing("BatchGetItem");
  const admitted = await app.fetch("/key", { as: { id: "eve", tenantId: "umbrella", roles: [] } });
  expect([admitted.status, admitted.headers.get("ratelimit")]).toEqual([200, null]);
});

test("in code, an open limit admits and a shut one throws while the store fails", async () => {
  failing();
  expect(await app.call("notes.code.open")).toEqual({
    ok: true,
    remaining: 0,
    retryAfterSeconds: 0,
  });
  await expect(app.call("notes.code.shut")).rejects.toMatchObject({ code: "overloaded" });
  app.clock.advance(1_000);
  expect(await app.call("notes.code.open")).toMatchObject({ ok: true });
  expect(await app.call("notes.code.shut")).toMatchObject({ ok: true });
  await expect(app.call("notes.code.open")).rejects.toMatchObject({ code: "too_many_requests" });
});
