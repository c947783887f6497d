// `limits.inFlightPerTenant`: how many requests of one tenant a process works on.
import { afterEach, expect, test } from "vitest";
import { z } from "zod";
import { access, buildServer, createTenantConfig, defineFeature, sse } from "../../index.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";

const acme = { id: "ann", tenantId: "acme" };
const globex = { id: "bob", tenantId: "globex" };

let app: TestApp;
let held = Promise.withResolvers<void>();
let begun = 0;
afterEach(async () => {
  held.resolve();
  await app?.close();
  held = Promise.withResolvers();
  begun = 0;
});

const work = defineFeature("work", (r) => {
  const keys = r.config({
    keys: {
      atOnce: createTenantConfig("number", { default: 2, bounds: { min: 1, max: 50 } }),
      byPlan: createTenantConfig("number", { computed: () => 1 }),
    },
  });
  const wait = async () => {
    begun += 1;
    await held.promise;
    return {};
  };
  r.query("item.wait", { route: "GET /wait", access: access.everyone, handler: wait });
  r.write("item.add", { route: "POST /items", access: access.authenticated, handler: wait });
  r.query("item.follow", {
    route: "GET /follow",
    access: access.authenticated,
    output: sse(z.object({ n: z.number() })),
    handler: async function* () {
      yield { data: { n: 1 } };
      await held.promise;
    },
  });
  r.query("item.fail", {
    route: "GET /fail",
    access: access.authenticated,
    handler: () => Promise.reject(new Error("broken")),
  });
  return { keys };
});
const { atOnce } = work.keys;

async function start(limit: number | typeof atOnce, log = {}): Promise<void> {
  app = await startTestApp(
    buildServer({ features: [work], limits: { inFlightPerTenant: limit }, log }),
  );
}

async function begins(count: number): Promise<void> {
  await expect.poll(() => begun).toBe(count);
}

test("a tenant's request above the limit is refused before its body is read, and other callers are not", async () => {
  await start(2);
  const running = [
    app.fetch("/wait", { as: acme }),
    app.fetch("/items", { method: "POST", as: acme, body: {} }),
  ];
  await begins(2);

  const headers = { "idempotency-key": "k1", origin: "https://app.test" };
  const refused = await app.fetch("/items", { method: "POST", as: acme, body: {}, headers });
  expect(refused.status).toBe(429);
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(await refused.json()).toEqual({
    error: "too_many_requests",
    message: "Too many requests of this tenant are in progress; try again later",
    requestId: expect.any(String),
  });

  // Another tenant, a caller without a tenant, and keelson's own routes.
  const others = [
    app.fetch("/wait", { as: globex }),
    app.fetch("/wait"),
    app.fetch("/wait"),
    app.fetch("/wait"),
  ];
  await begins(6);
  expect((await app.fetch("/config", { as: acme })).status).toBe(200);
  held.resolve();
  for (const response of await Promise.all([...running, ...others]))
    expect(response.status).toBe(200);

  // The refused request took no claim: its key still works.
  const retried = await app.fetch("/items", { method: "POST", as: acme, body: {}, headers });
  expect([retried.status, retried.headers.get("idempotent-replayed")]).toEqual([200, null]);
});

test("a request that fails, or whose client leaves, makes room", async () => {
  await start(1);
  for (let time = 0; time < 3; time++)
    expect((await app.fetch("/fail", { as: acme })).status).toBe(500);

  const leaving = new AbortController();
  const left = app.fetch("/wait", { as: acme, signal: leaving.signal });
  await begins(1);
  leaving.abort();
  await expect(left).rejects.toThrow();
  expect((await app.fetch("/fail", { as: acme })).status).toBe(429);
  held.resolve(); // a handler that ignores the signal works on
  await expect.poll(async () => (await app.fetch("/fail", { as: acme })).status).toBe(500);
});

test.each([
  ["ends", (_leaving: AbortController) => held.resolve()],
  ["is left", (leaving: AbortController) => leaving.abort()],
])("a stream counts until it %s, even if the server logs no requests", async (_, end) => {
  await start(1, { requests: false });
  const leaving = new AbortController();
  const stream = await app.fetch("/follow", { as: acme, signal: leaving.signal });
  const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
  expect(Buffer.from((await reader.read()).value ?? []).toString()).toContain('{"n":1}');
  expect((await app.fetch("/fail", { as: acme })).status).toBe(429);
  end(leaving);
  await expect.poll(async () => (await app.fetch("/fail", { as: acme })).status).toBe(500);
  await reader.cancel().catch(() => undefined);
});

test("the number may be a key of the tenant", async () => {
  await start(atOnce);
  await app.rows.put({ scope: "tenant", key: atOnce.id, tenantId: "globex", value: 1 });
  const running = [acme, acme, globex].map((as) => app.fetch("/wait", { as }));
  await begins(3);
  expect((await app.fetch("/wait", { as: acme })).status).toBe(429);
  expect((await app.fetch("/wait", { as: globex })).status).toBe(429);

  // A raised number counts at once.
  await app.rows.put({ scope: "tenant", key: atOnce.id, tenantId: "globex", value: 2, version: 2 });
  running.push(app.fetch("/wait", { as: globex }));
  await begins(4);
  held.resolve();
  for (const response of await Promise.all(running)) expect(response.status).toBe(200);
});

test.each([
  ["the default of its key", atOnce, 429],
  ["no limit", work.keys.byPlan, 500],
])("while the number cannot be read, %s applies", async (_, key, status) => {
  await start(key);
  const unread = (path: string) => {
    app.faults.before("BatchGetItem", 1).fail("InternalServerError");
    return app.fetch(path, { as: acme });
  };
  const running = [unread("/wait")];
  await begins(1);
  running.push(unread("/wait"));
  await begins(2);
  expect((await unread("/fail")).status).toBe(status);
  held.resolve();
  await Promise.all(running);
});
