import { parseList } from "structured-headers";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { NotFoundError } from "../../base/errors/errors.ts";
import { access } from "../../base/identity/access.ts";
import { createTenantConfig } from "../../parts/config/declare/declaration.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import type { HookContext } from "../handlers/pipeline-context.ts";
import { buildServer } from "../server/server.ts";

const everyone = { access: access.everyone };
let bodies = 0;

const notes = defineFeature(
  "notes",
  (r) => {
    const config = r.config({
      keys: {
        requestsPerMinute: createTenantConfig("number", { default: 3, bounds: { min: 0, max: 9 } }),
      },
    });
    const sms = r.rateLimit("sms", { per: "tenant", requests: 3, window: "hour" });
    const tags = r.rateLimit("tags", { per: () => 7 as never, requests: 3, window: "hour" });
    r.query("note.list", {
      route: "GET /notes",
      ...everyone,
      rateLimit: { per: "tenant", requests: config.requestsPerMinute, window: "minute" },
      handler: async () => ({ items: [] }),
    });
    r.write("note.create", {
      route: "POST /notes",
      access: access.authenticated,
      input: z.object({ text: z.string() }).transform((input) => {
        bodies += 1;
        return input;
      }),
      rateLimit: [
        { per: "user", requests: 2, window: "hour", name: "creates" },
        { per: "ip", requests: 5, window: "hour" },
        { per: "all", requests: 4, window: "day", name: "creates" },
      ],
      handler: async (_ctx, { text }) => ({ text }),
    });
    r.query("note.find", {
      route: "GET /find",
      ...everyone,
      rateLimit: {
        per: ({ request }) => String(request?.headers["x-topic"]),
        requests: 1,
        window: "hour",
      },
      handler: async () => ({}),
    });
    r.query("note.count", {
      route: "GET /count",
      ...everyone,
      rateLimit: { per: "user", requests: 1, window: "hour" },
      handler: async () => ({}),
    });
    r.query("note.fail", {
      route: "GET /fails/:kind",
      access: access.roles("editor"),
      input: z.object({ kind: z.string().max(10) }),
      errors: { not_found: 404 },
      rateLimit: { per: "tenant", requests: 9, window: "hour" },
      handler: async (_ctx, { kind }) => {
        if (kind === "missing") throw new NotFoundError("note", kind);
        if (kind === "broken") throw new Error("broken");
        return {};
      },
    });
    r.query("note.unknown", {
      route: "GET /unknown",
      access: access.authenticated,
      rateLimit: [
        { per: "tenant", requests: config.requestsPerMinute, window: "minute" },
        { per: () => "a", requests: 1, window: "hour" },
      ],
      handler: async () => ({}),
    });
    r.query("note.odd", {
      route: "GET /odd",
      ...everyone,
      rateLimit: { per: () => undefined as never, requests: 1, window: "hour" },
      handler: async () => ({}),
    });
    const errors = { too_many_requests: 429 };
    const send = async (
      { rateLimit }: HookContext,
      { count }: { readonly count?: number | undefined },
    ) => ({
      ...(await rateLimit.take(sms, count)),
    });
    const input = z.object({ count: z.number().optional() });
    const open = { ...everyone, errors, input };
    r.write("sms.send", { route: "POST /sms", ...open, handler: send });
    r.write("sms.try", {
      route: "POST /sms/try",
      ...open,
      handler: async ({ rateLimit }, { count }) => ({ ...(await rateLimit.tryTake(sms, count)) }),
    });
    r.query("sms.other", {
      handler: async ({ rateLimit }, name) =>
        rateLimit.take({ kind: "rate-limit", name: `${name}` }),
    });
    r.query("sms.tag", { handler: async ({ rateLimit }) => rateLimit.take(tags) });
    return { config };
  },
  {},
);
const server = () => buildServer({ features: [notes], cors: { origins: ["https://app.test"] } });

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(server());
});
afterAll(() => app.close());
// Each test starts at the start of a day, after the days of earlier tests.
beforeEach(() => app.clock.advance(86_400_000 - (app.clock.now() % 86_400_000) + 1_500));

const ann = { id: "ann", tenantId: "acme", roles: [] };
const bob = { id: "bob", tenantId: "acme", roles: [] };
const eve = { id: "eve", tenantId: "umbrella", roles: [] };
const statusesOf = async (times: number, ask: () => Promise<Response>) => {
  const statuses: number[] = [];
  for (let time = 0; time < times; time += 1) statuses.push((await ask()).status);
  return statuses;
};
const fieldOf = (response: Response, name: string) =>
  parseList(response.headers.get(name) ?? "").map(([item, parameters]) => [
    item,
    Object.fromEntries(parameters),
  ]);
/** Seconds until the end of a window of a minute in which the response came: the clock goes on. */
const leftIn = (response: Response) => {
  const [, { t = 0 } = {}] = fieldOf(response, "ratelimit")[0] as [unknown, { t?: number }]; // safe: it has one limit
  expect(t).toBeGreaterThan(40);
  expect(t).toBeLessThanOrEqual(59);
  return t;
};
const create = (as = ann, headers: Record<string, string> = {}) =>
  app.fetch("/notes", { method: "POST", body: { text: "a" }, as, headers });

test("refuses a tenant's requests above its number, until the window ends, and does not affect other tenants", async () => {
  const list = () => app.fetch("/notes", { as: ann });
  expect(await statusesOf(5, list)).toEqual([200, 200, 200, 429, 429]);
  expect((await app.fetch("/notes", { as: eve })).status).toBe(200);
  app.clock.advance(60_000);
  expect((await list()).status).toBe(200);
});

test("answers with the uniform body, the time to wait, and fields that parse", async () => {
  const list = () => app.fetch("/notes", { as: ann, headers: { origin: "https://app.test" } });
  const first = await list();
  expect(fieldOf(first, "ratelimit-policy")).toEqual([["requests-per-minute", { q: 3, w: 60 }]]);
  expect(fieldOf(first, "ratelimit")).toEqual([
    ["requests-per-minute", { r: 2, t: leftIn(first) }],
  ]);
  await list();
  await list();
  const refused = await list();
  const left = leftIn(refused);
  expect(fieldOf(refused, "ratelimit")).toEqual([["requests-per-minute", { r: 0, t: left }]]);
  expect(refused.headers.get("retry-after")).toBe(String(left));
  expect(refused.headers.get("access-control-expose-headers")).toContain(
    "Retry-After, RateLimit, RateLimit-Policy",
  );
  expect(await refused.json()).toMatchObject({
    error: "too_many_requests",
    message: "Too many requests: requests-per-minute allows 3 per minute",
  });
});

test("takes the number from the tenant's configuration, and follows a raised one immediately", async () => {
  const list = () => app.fetch("/notes", { as: ann });
  const key = notes.config.requestsPerMinute.id;
  await app.rows.put({ scope: "tenant", tenantId: "acme", key, value: 1 });
  expect(await statusesOf(2, list)).toEqual([200, 429]);
  await app.rows.put({ scope: "tenant", tenantId: "acme", key, value: 5 });
  expect(await statusesOf(5, list)).toEqual([200, 200, 200, 200, 429]);
});

test("all limits of a route apply, and a request that one refuses does not count in the others", async () => {
  expect(await statusesOf(3, () => create())).toEqual([200, 200, 429]);
  const refused = await create();
  expect(fieldOf(refused, "ratelimit-policy")).toEqual([
    ["ip-hour", { q: 5, w: 3_600 }],
    ["creates", { q: 2, w: 3_600 }],
    ["creates-2", { q: 4, w: 86_400 }],
  ]);
  expect(fieldOf(refused, "ratelimit").map(([name, { r }]) => [name, r])).toEqual([
    ["ip-hour", 3],
    ["creates", 0],
    ["creates-2", 2],
  ]);
  expect(await statusesOf(3, () => create(bob))).toEqual([200, 200, 429]);
  expect(await statusesOf(1, () => create(eve))).toEqual([429]); // the fifth of all
});

test("is checked before the body is read and before any claim: the same key works later", async () => {
  await create();
  await create();
  const before = bodies;
  const headers = { "idempotency-key": "key-1" };
  expect((await create(ann, headers)).status).toBe(429);
  expect(bodies).toBe(before);
  app.clock.advance(3_600_000);
  const done = await create(ann, headers);
  expect([done.status, done.headers.get("idempotent-replayed")]).toEqual([200, null]);
});

test("a replay has fresh fields", async () => {
  const headers = { "idempotency-key": "key-2" };
  await create(ann, headers);
  const replay = await create(ann, headers);
  expect(replay.headers.get("idempotent-replayed")).toBe("true");
  expect(fieldOf(replay, "ratelimit").map(([, { r }]) => r)).toEqual([3, 0, 2]);
});

test("a limit per address counts requests whose token is refused", async () => {
  const headers = { authorization: "Bearer nobody" };
  const ask = () => app.fetch("/notes", { method: "POST", body: {}, headers });
  expect(await statusesOf(6, ask)).toEqual([401, 401, 401, 401, 401, 429]);
  const refused = await ask();
  // The other limits are not checked.
  expect(fieldOf(refused, "ratelimit").map(([name, { r }]) => [name, r])).toEqual([
    ["ip-hour", 0],
    ["creates", 2],
    ["creates-2", 4],
  ]);
});

test("every response of a limited route has both fields, also before its limits are checked", async () => {
  const ask = (path: string, as?: Partial<typeof ann>, method = "GET") =>
    app.fetch(path, { ...(as && { as: { ...ann, ...as } }), method });
  const states: [number, unknown, unknown][] = [];
  const note = async (answer: Promise<Response>) => {
    const response = await answer;
    const policy = fieldOf(response, "ratelimit-policy");
    const left = fieldOf(response, "ratelimit").map(([name, { r }]) => [name, r]);
    states.push([response.status, policy.map(([name, { q, w }]) => [name, q, w]), left]);
  };
  await note(ask("/fails/ok"));
  await note(ask("/fails/ok", {}));
  await note(ask("/fails/ok", { roles: ["editor"] as never }));
  for (const kind of ["missing", "broken", "x".repeat(20)])
    await note(ask(`/fails/${kind}`, { roles: ["editor"] as never }));
  const policy = [["tenant-hour", 9, 3_600]];
  expect(states).toEqual([
    [401, policy, [["tenant-hour", 9]]],
    [403, policy, [["tenant-hour", 9]]],
    [200, policy, [["tenant-hour", 8]]],
    [404, policy, [["tenant-hour", 7]]],
    [500, policy, [["tenant-hour", 6]]],
    [422, policy, [["tenant-hour", 5]]],
  ]);
  states.splice(0);
  await note(ask("/fails/ok", {}));
  expect(states).toEqual([[403, policy, [["tenant-hour", 5]]]]);
});

test("a response that comes before its limits are checked has no fields for numbers and callers that are not known yet", async () => {
  const { status, headers } = await app.fetch("/unknown");
  expect([status, headers.get("ratelimit"), headers.get("ratelimit-policy")]).toEqual([
    ...[401, null, null],
  ]);
});

test("callers without a user count by address", async () => {
  expect(await statusesOf(2, () => app.fetch("/count"))).toEqual([200, 429]);
  expect(await statusesOf(2, () => app.fetch("/count", { as: ann }))).toEqual([200, 429]);
});

test("callers of a tenant with the same string share a number", async () => {
  const find = (topic: string, as = ann) =>
    app.fetch("/find", { as, headers: { "x-topic": topic } });
  expect(await statusesOf(2, () => find("a"))).toEqual([200, 429]);
  expect(await statusesOf(1, () => find("a", bob))).toEqual([429]);
  expect(await statusesOf(1, () => find("b"))).toEqual([200]);
  expect(await statusesOf(1, () => find("a", eve))).toEqual([200]);
});

test("a function that does not return a string fails the request, and its message names the limit", async () => {
  expect((await app.fetch("/odd")).status).toBe(500);
  expect(app.logs.findLast(({ msg }) => msg === "request.failed")?.["message"]).toBe(
    "notes.note.odd own-hour: `per` returned undefined; return a string",
  );
});

test("logs the first refusal of a window and partition", async () => {
  const before = app.logs.length;
  await statusesOf(6, () => app.fetch("/notes", { as: ann }));
  const lines = app.logs.slice(before).filter(({ msg }) => msg === "rate.limited");
  expect(lines).toMatchObject([
    {
      level: "warn",
      limit: "notes.note.list requests-per-minute",
      key: notes.config.requestsPerMinute.id,
      window: "minute",
      tenantId: "acme",
    },
  ]);
});

test("in code, takes the whole count or nothing", async () => {
  const send = (path: string, count?: number) =>
    app.fetch(path, { method: "POST", body: { count }, as: ann });
  expect(await (await send("/sms", 2)).json()).toEqual({
    ok: true,
    remaining: 1,
    retryAfterSeconds: 0,
  });
  const left = () => Math.ceil((3_600_000 - (app.clock.now() % 3_600_000)) / 1_000);
  const before = left();
  const refused = await send("/sms", 2);
  expect(refused.status).toBe(429);
  const tried = (await (await send("/sms/try", 2)).json()) as { retryAfterSeconds: number };
  expect(tried).toMatchObject({ ok: false, remaining: 1 });
  const after = left(); // the clock goes on
  for (const seconds of [Number(refused.headers.get("retry-after")), tried.retryAfterSeconds]) {
    expect(seconds).toBeGreaterThanOrEqual(after);
    expect(seconds).toBeLessThanOrEqual(before);
  }
  expect((await send("/sms")).status).toBe(200);
  expect((await send("/sms")).status).toBe(429);
});

test("in code, refuses a wrong count, an undeclared limit, and a partition that is not a string", async () => {
  const send = (count: number) => app.fetch("/sms", { method: "POST", body: { count }, as: ann });
  expect((await send(0)).status).toBe(500);
  await expect(app.call("notes.sms.other", "none")).rejects.toThrow(
    'ctx.rateLimit: "none" is declared by no feature of this server',
  );
  await expect(app.call("notes.sms.tag")).rejects.toThrow("`per` returned 7; return a string");
});
