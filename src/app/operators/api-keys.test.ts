import { ScanCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { access, buildServer, defineFeature, reply } from "keelson";
import { type Caller, startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { generateSecret } from "../../parts/api-keys/secret.ts";

const who = defineFeature("who", (r) => {
  r.query("caller.show", {
    route: "GET /caller",
    access: access.authenticated,
    handler: async ({ user }) => user,
  });
  r.query("caller.guess", {
    route: "GET /open",
    access: access.everyone,
    handler: async ({ user }) => ({ id: user.id ?? "nobody", kind: user.kind }),
  });
  r.query("report.show", {
    route: "GET /report",
    access: access.roles("reader"),
    handler: async () => ({ ok: true }),
  });
  const index = r.job("note.index", {
    input: z.object({}),
    handler: async ({ user, log }) => log.info("indexed", { user }),
  });
  r.write("note.add", {
    route: "POST /notes",
    access: access.authenticated,
    handler: async (ctx) => {
      await ctx.enqueue(index, {});
      return reply({ ok: true });
    },
  });
});
const server = buildServer({ features: [who], auth: { apiKeys: true } });

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(server);
});
afterAll(() => app.close());

const adminOf = (tenantId: string): Caller => ({ id: "ann", tenantId, roles: ["admin", "reader"] });
const admin = adminOf("acme");

interface Key {
  readonly id: string;
  readonly key: string;
  readonly name: string;
  readonly roles: readonly string[];
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly lastUsedAt?: string | null;
}

async function create(body: object = {}, as: Caller = admin, headers = {}) {
  const given = { name: "billing", roles: ["reader"], ...body };
  const response = await app.fetch("/api-keys", { body: given, as, headers });
  return { status: response.status, body: (await response.json()) as Key };
}

async function keyOf(body: object = {}, as: Caller = admin): Promise<Key> {
  const { status, body: key } = await create(body, as);
  expect(status).toBe(201);
  return key;
}

async function ask(key: string, path = "/caller", headers: Record<string, string> = {}) {
  const response = await app.fetch(path, { headers: { "x-api-key": key, ...headers } });
  return { status: response.status, body: await response.json() };
}

async function send(method: string, path: string, body?: object, as: Caller | undefined = admin) {
  const response = await app.fetch(path, { method, as, ...(body && { body }) });
  const text = await response.text();
  return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
}

/** Calls of the store that `work` causes. */
async function callsOf(work: () => Promise<unknown>): Promise<Record<string, number>> {
  const before = { ...app.calls };
  await work();
  const changed = Object.entries(app.calls).filter(([name, count]) => count !== before[name]);
  return Object.fromEntries(changed.map(([name, count]) => [name, count - (before[name] ?? 0)]));
}

describe("a key", () => {
  test("is shown once, and identifies its tenant and roles by either header", async () => {
    const { status, body } = await create({ expiresInSeconds: 3_600 });
    const { id, key } = body;

    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.stringMatching(/^key_/),
      name: "billing",
      roles: ["reader"],
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
      expiresAt: new Date(Date.parse(body.createdAt) + 3_600_000).toISOString(),
      key: expect.stringMatching(/^kln_[0-9A-Za-z]{49}$/),
    });
    const user = { id, tenantId: "acme", roles: ["reader"], kind: "apiKey" };
    expect(await ask(key)).toEqual({ status: 200, body: user });
    const bearer = await app.fetch("/caller", { headers: { authorization: `bearer ${key}` } });
    expect(await bearer.json()).toEqual(user);
    expect((await ask(key, "/report")).status).toBe(200);
    expect(await ask(key, "/open")).toEqual({ status: 200, body: { id, kind: "apiKey" } });
  });

  test("is a user of kind user for everybody else", async () => {
    expect((await send("GET", "/caller")).body).toMatchObject({ kind: "user" });
    expect(await (await app.fetch("/open")).json()).toEqual({ id: "nobody", kind: "user" });
  });
});

describe("the stored answer", () => {
  test("lacks the key, which a retry does not get", async () => {
    const headers = { "idempotency-key": "retried-1" };
    const first = await create({}, admin, headers);
    const second = await create({}, admin, headers);
    const { key, ...record } = first.body;

    expect(key).toMatch(/^kln_/);
    expect(second).toEqual({ status: 201, body: record });
    expect((await send("GET", "/api-keys")).body.items.map(({ id }: Key) => id)).toContain(
      record.id,
    );
  });

  test("lacks the key of a rotation as well", async () => {
    const { id } = await keyOf();
    const rotate = async () => {
      const response = await app.fetch(`/api-keys/${id}/rotate`, {
        body: { overlapSeconds: 0 },
        as: admin,
        headers: { "idempotency-key": "rotated-1" },
      });
      return { cache: response.headers.get("cache-control"), body: (await response.json()) as Key };
    };
    const [first, second] = [await rotate(), await rotate()];

    expect(first.cache).toBe("no-store");
    expect(first.body.key).toMatch(/^kln_/);
    expect(second.body).not.toHaveProperty("key");
    expect(second.body.id).toBe(id);
  });
});

describe("a caller", () => {
  test("gives no role that they lack, at creation and at rotation", async () => {
    const refused = await create({ roles: ["owner"] });
    expect(refused).toMatchObject({ status: 403, body: { error: "access_denied" } });
    const { id } = await keyOf();
    const less = { ...admin, roles: ["admin"] };
    const body = { overlapSeconds: 0 };
    expect((await send("POST", `/api-keys/${id}/rotate`, body, less)).status).toBe(403);
    expect((await send("DELETE", `/api-keys/${id}`, undefined, less)).status).toBe(204);
  });

  test("without the rule, or with an API key, manages no keys", async () => {
    const { id, key } = await keyOf({ roles: ["admin"] });
    const reader = { ...admin, roles: ["reader"] };
    for (const [method, path, body] of [
      ["GET", "/api-keys", undefined],
      ["POST", "/api-keys", { name: "more", roles: [] }],
      ["POST", `/api-keys/${id}/rotate`, { overlapSeconds: 0 }],
      ["DELETE", `/api-keys/${id}`, undefined],
    ] as const) {
      const headers = { "x-api-key": key };
      const byKey = await app.fetch(path, { method, headers, ...(body && { body }) });
      expect([path, byKey.status]).toEqual([path, 403]);
      expect((await send(method, path, body, reader)).status).toBe(403);
      expect((await app.fetch(path, { method, ...(body && { body }) })).status).toBe(401);
    }
    expect((await ask(key)).status).toBe(200);
  });

  test("finds no key of another tenant", async () => {
    const { id, key } = await keyOf();
    const other = adminOf("globex");
    const body = { overlapSeconds: 0 };

    expect((await send("POST", `/api-keys/${id}/rotate`, body, other)).status).toBe(404);
    expect((await send("DELETE", `/api-keys/${id}`, undefined, other)).status).toBe(404);
    expect((await send("GET", "/api-keys", undefined, other)).body).toEqual({ items: [] });
    expect((await ask(key)).status).toBe(200);
  });

  test("is not found by an ID that is too long for the table", async () => {
    const id = "a".repeat(3_000);
    const body = { overlapSeconds: 0 };
    expect((await send("POST", `/api-keys/${id}/rotate`, body)).status).toBe(404);
    expect((await send("DELETE", `/api-keys/${id}`)).status).toBe(404);
  });

  test("with two credentials is refused", async () => {
    const { key } = await keyOf();
    const authorization = `Bearer ${await app.token(admin)}`;
    for (const given of [authorization, `Bearer ${key}`])
      expect((await ask(key, "/caller", { authorization: given })).status).toBe(401);
    expect(await ask(key, "/open", { authorization })).toMatchObject({ body: { id: "nobody" } });
    expect((await ask("nothing", "/caller", { authorization })).status).toBe(401);
  });

  test.each([
    [{}, ["name", "roles"]],
    [{ name: "", roles: "reader" }, ["name", "roles"]],
    [{ name: "a\u0000", roles: [""] }, ["name", "roles"]],
    [{ name: "a", roles: [], expiresInSeconds: 0 }, ["expiresInSeconds"]],
    [{ name: "a", roles: [], expiresInSeconds: 315_360_001 }, ["expiresInSeconds"]],
    [{ name: "a", roles: [], expiresInSeconds: "9" }, ["expiresInSeconds"]],
    [{ name: "a", roles: [], key: "kln_" }, ["key"]],
  ])("is told the wrong fields of %j", async (body, fields) => {
    const { status, body: answer } = await send("POST", "/api-keys", body);
    expect(status).toBe(422);
    expect(answer.fields.map(({ field }: { field: string }) => field)).toEqual(fields);
  });

  test.each([undefined, -1, 0.5, 2_592_001, "60"])(
    "may not rotate with the overlap %s",
    async (overlapSeconds) => {
      const { id } = await keyOf();
      const { status } = await send("POST", `/api-keys/${id}/rotate`, { overlapSeconds });
      expect(status).toBe(422);
    },
  );
});

describe("a secret", () => {
  test("costs no read with a wrong checksum, and none while it is known", async () => {
    const { key } = await keyOf();
    const wrong = `${key.slice(0, -1)}${key.endsWith("0") ? "1" : "0"}`;
    expect(await callsOf(() => ask(wrong))).toEqual({});
    expect(await callsOf(() => ask("kln_"))).toEqual({});
    expect(await callsOf(() => ask(key))).toEqual({ GetItem: 1, UpdateItem: 1 });
    expect(await callsOf(() => ask(key))).toEqual({});
    await app.clock.advance(5_000);
    expect(await callsOf(() => ask(key))).toEqual({ GetItem: 1 });
  });

  test("costs one read a minute if it is unknown, however many ask at once", async () => {
    const key = generateSecret();
    expect(await callsOf(() => Promise.all([ask(key), ask(key), ask(key)]))).toEqual({
      GetItem: 1,
    });
    await app.clock.advance(59_000);
    expect(await callsOf(() => ask(key))).toEqual({});
    await app.clock.advance(1_000);
    expect(await callsOf(() => ask(key))).toEqual({ GetItem: 1 });
  });

  test("gets the same answer if it is unknown, expired, revoked or malformed", async () => {
    const expiring = await keyOf({ expiresInSeconds: 60 });
    const revoked = await keyOf();
    expect((await ask(expiring.key)).status).toBe(200);
    expect((await ask(revoked.key)).status).toBe(200);
    await send("DELETE", `/api-keys/${revoked.id}`);
    await app.clock.advance(60_000);
    const keys = [expiring.key, revoked.key, generateSecret(), "kln_1"];
    const answers = await Promise.all(keys.map((key) => ask(key)));

    const same = {
      status: 401,
      body: { error: "unauthenticated", message: "the API key is not valid" },
    };
    for (const answer of answers) expect(answer).toMatchObject(same);
    expect(await callsOf(() => ask(expiring.key))).toEqual({});
  });

  test("that is revoked is refused at once in the process that has done it", async () => {
    const { id, key } = await keyOf();
    expect((await ask(key)).status).toBe(200);
    expect((await send("DELETE", `/api-keys/${id}`)).status).toBe(204);
    expect((await ask(key)).status).toBe(401);
    expect((await send("DELETE", `/api-keys/${id}`)).status).toBe(404);
  });

  test("and its successor are both valid during the overlap, and the third replaces both", async () => {
    const first = await keyOf();
    const rotate = async (overlapSeconds: number) => {
      const { status, body } = await send("POST", `/api-keys/${first.id}/rotate`, {
        overlapSeconds,
      });
      expect(status).toBe(200);
      return body as Key;
    };
    const second = await rotate(60);
    const { key: _old, ...record } = first;
    expect(second).toEqual({ ...record, key: expect.not.stringMatching(first.key) });
    expect((await ask(first.key)).body).toEqual((await ask(second.key)).body);
    await app.clock.advance(50_000);
    expect((await ask(first.key)).status).toBe(200);
    await app.clock.advance(10_000);
    expect([(await ask(first.key)).status, (await ask(second.key)).status]).toEqual([401, 200]);
    const third = await rotate(60);
    const fourth = await rotate(60);
    const statuses = [second, third, fourth].map(async ({ key }) => (await ask(key)).status);
    expect(await Promise.all(statuses)).toEqual([401, 200, 200]);
    expect((await send("DELETE", `/api-keys/${first.id}`)).status).toBe(204);
    expect([(await ask(third.key)).status, (await ask(fourth.key)).status]).toEqual([401, 401]);
  });

  test("of an overlap ends with its key, and an expired key is not rotated", async () => {
    const { id, key } = await keyOf({ expiresInSeconds: 10 });
    const rotate = () => send("POST", `/api-keys/${id}/rotate`, { overlapSeconds: 3_600 });
    const { body } = await rotate();
    await app.clock.advance(10_000);

    expect([(await ask(key)).status, (await ask(body.key)).status]).toEqual([401, 401]);
    expect(await rotate()).toMatchObject({ status: 409, body: { error: "api_key_expired" } });
  });

  test("whose store fails is a 503, since it may be valid", async () => {
    const { key } = await keyOf();
    app.faults.before("GetItem", 1).fail("InternalServerError");
    const response = await app.fetch("/caller", { headers: { "x-api-key": key } });
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "2"]);
    app.faults.before("UpdateItem", 1).fail("InternalServerError");
    expect((await ask(key)).status).toBe(200);
    expect(app.logs.map(({ msg }) => msg)).toContain("api_key.use_not_noted");
  });
});

test("keys that change at the same time change one after another", async () => {
  const { id, key } = await keyOf();
  const rotate = () => send("POST", `/api-keys/${id}/rotate`, { overlapSeconds: 60 });
  const rotated = await Promise.all([rotate(), rotate(), rotate()]);
  expect(rotated.map(({ status }) => status)).toEqual([200, 200, 200]);
  const keys = [key, ...rotated.map(({ body }) => body.key)];
  const statuses = await Promise.all(keys.map(async (one) => (await ask(one)).status));
  expect(statuses.filter((status) => status === 200)).toHaveLength(2);
  const revoke = () => send("DELETE", `/api-keys/${id}`);
  const revoked = await Promise.all([revoke(), revoke()]);
  expect(revoked.map(({ status }) => status).sort()).toEqual([204, 404]);
});

test("a change that the store refuses is an error, and the key stays as it was", async () => {
  const { id, key } = await keyOf();
  for (const attempt of [1, 2, 3])
    app.faults.before("TransactWriteItems", attempt).fail("InternalServerError");
  expect((await send("DELETE", `/api-keys/${id}`)).status).toBe(500);
  for (const attempt of [1, 2, 3])
    app.faults.before("TransactWriteItems", attempt).fail("InternalServerError");
  expect((await create()).status).toBe(500);
  expect((await ask(key)).status).toBe(200);
});

test("a tenant has at most 1,000 keys, and may create another once one is deleted", async () => {
  const full = adminOf("full");
  const { id } = await keyOf({}, full);
  const root = { id: "root", tenantId: "ops", roles: ["systemAdmin"] };
  const database = (await app.ctx(root)).acrossTenants("a test");
  await database.send(
    new UpdateCommand({
      TableName: "keelson-once",
      Key: { pk: "api-keys#full", sk: "count" },
      UpdateExpression: "SET #keys = :all",
      ExpressionAttributeNames: { "#keys": "keys" },
      ExpressionAttributeValues: { ":all": 1_000 },
    }),
  );
  expect(await create({}, full)).toMatchObject({
    status: 409,
    body: { error: "too_many_api_keys" },
  });
  expect((await send("DELETE", `/api-keys/${id}`, undefined, full)).status).toBe(204);
  expect((await create({}, full)).status).toBe(201);
  expect((await create({}, full)).status).toBe(409);
});

test("`manage` decides who manages keys", async () => {
  const auth = { apiKeys: { manage: access.roles("owner") } };
  const owned = await startTestApp(buildServer({ features: [who], auth }));
  const create = async (roles: string[]) => {
    const as = { id: "ann", tenantId: "acme", roles };
    return (await owned.fetch("/api-keys", { body: { name: "a", roles }, as })).status;
  };
  expect([await create(["admin"]), await create(["owner"])]).toEqual([403, 201]);
  await owned.close();
});

test("without API keys there are no routes, and a key is a malformed token", async () => {
  const plain = await startTestApp(buildServer({ features: [who], auth: { apiKeys: false } }));
  const key = generateSecret();
  const as = admin;
  expect((await plain.fetch("/api-keys", { as })).status).toBe(404);
  expect((await plain.fetch("/caller", { headers: { "x-api-key": key } })).status).toBe(401);
  const authorization = `Bearer ${key}`;
  expect((await plain.fetch("/caller", { headers: { authorization } })).status).toBe(401);
  expect((await plain.fetch("/caller", { as, headers: { "x-api-key": key } })).status).toBe(200);
  await plain.close();
});

test("no table, line or stored answer has a secret", async () => {
  const scanned = await startTestApp(buildServer({ features: [who], auth: { apiKeys: true } }));
  const keys: string[] = [];
  const post = async (path: string, body: object) => {
    const headers = { "idempotency-key": `scanned-${keys.length}` };
    const response = await scanned.fetch(path, { body, as: admin, headers });
    const answer = (await response.json()) as Key;
    keys.push(answer.key);
    return answer.id;
  };
  const id = await post("/api-keys", { name: "billing", roles: [] });
  await post(`/api-keys/${id}/rotate`, { overlapSeconds: 60 });
  for (const key of keys)
    for (const path of ["/caller", "/nowhere", `/caller?key=x`])
      await scanned.fetch(path, { headers: { "x-api-key": key } });
  await scanned.fetch("/notes", { method: "POST", headers: { "x-api-key": keys[1] ?? "" } });
  await scanned.settled();
  const root = { id: "root", tenantId: "ops", roles: ["systemAdmin"] };
  const database = (await scanned.ctx(root)).acrossTenants("a test");
  const tables = ["config", "once", "outbox"].map(async (name) => {
    const { Items = [] } = await database.send(new ScanCommand({ TableName: `keelson-${name}` }));
    // Stored answers are bytes.
    return JSON.stringify(Items, (_name, value) =>
      value?.type === "Buffer" || value instanceof Uint8Array
        ? Buffer.from(value.data ?? value).toString("latin1")
        : value,
    );
  });
  const everything = [...(await Promise.all(tables)), JSON.stringify(scanned.logs)].join("");
  expect(everything).toContain(id);
  expect(everything).toContain("billing");
  expect(keys).toHaveLength(2);
  for (const key of keys) {
    expect(key).toMatch(/^kln_/);
    expect(everything).not.toContain(key.slice(4, 47));
  }
  await scanned.close();
});

test("the last use is noted every 30 minutes", async () => {
  const { id, key } = await keyOf();
  const used = async () => {
    const { body } = await send("GET", "/api-keys");
    return body.items.find((one: Key) => one.id === id).lastUsedAt;
  };
  expect(await used()).toBeNull();
  await ask(key);
  const first = await used();
  expect(first).toMatch(/^\d{4}-.*Z$/);
  await app.clock.advance(1_700_000);
  await ask(key);
  expect(await used()).toBe(first);
  await app.clock.advance(100_000);
  await ask(key);
  expect(Date.parse(await used()) - Date.parse(first)).toBeGreaterThanOrEqual(1_800_000);
});

test("a message that a key's request causes belongs to the key, as a user", async () => {
  const { id, key } = await keyOf();
  const response = await app.fetch("/notes", { method: "POST", headers: { "x-api-key": key } });
  expect(response.status).toBe(200);
  await app.settled();
  const user = { id, tenantId: "acme", roles: [], kind: "user" };
  expect(app.logs).toContainEqual(expect.objectContaining({ msg: "indexed", user }));
});

test("a rejected request names the caller of a key that is known, without a read", async () => {
  const { id, key } = await keyOf();
  const missing = () => ask(key, "/nowhere");
  const lines = () =>
    app.logs.filter(({ msg, userId }) => msg === "request.failed" && userId === id);
  expect(await callsOf(missing)).toEqual({});
  expect(lines()).toEqual([]);
  await ask(key);
  expect(await callsOf(missing)).toEqual({});
  expect(lines()).toHaveLength(1);
  await ask(key, "/nowhere", { authorization: "Bearer x" });
  expect(lines()).toHaveLength(1);
  expect((await send("GET", "/nowhere")).status).toBe(404);
});
