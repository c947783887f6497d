import { PutParameterCommand, SSMClient } from "@aws-sdk/client-ssm";
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import {
  access,
  buildServer,
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
  defineFeature,
} from "keelson";
import {
  type RotationProgress,
  resetConfig,
  rotateConfigKeys,
  setConfig,
  undoConfig,
} from "keelson/operators";
import { type Caller, startTestApp, type TestApp } from "keelson/testing";
import { afterEach, expect, test } from "vitest";
import { newRingKey } from "../../src/base/secrets/key-ring.ts";

const parameter = "/vault/key-ring";
const keys = { k1: newRingKey(), k2: newRingKey() };
type KeyName = keyof typeof keys;

/** A ring as its parameter holds it; the first name is the active key. */
const ring = (...names: readonly [KeyName, ...KeyName[]]) =>
  JSON.stringify({
    active: names[0],
    keys: Object.fromEntries(names.map((name) => [name, keys[name]])),
  });

const vault = defineFeature("vault", (r) => {
  const rules = { read: access.authenticated, write: access.authenticated };
  const config = r.config({
    keys: {
      token: createTenantConfig("text", { encrypted: true, ...rules }),
      pin: createUserConfig("number", { encrypted: true, default: 0, ...rules }),
      shared: createSystemConfig("text", { encrypted: true, default: "none" }),
    },
  });
  r.query("secrets.use", {
    route: "GET /use",
    access: access.authenticated,
    handler: async (ctx) => ({
      length: (await ctx.config(config.token))?.length,
      isSet: (await ctx.config(config.pin)) !== 0,
    }),
  });
  r.query("secrets.break", {
    route: "GET /break",
    access: access.authenticated,
    handler: async (ctx) => {
      const secret = { token: await ctx.config(config.token) };
      ctx.log.info("about to break", { token: secret.token });
      throw new Error("it breaks with a secret at hand");
    },
  });
  return { config };
});
const { token, pin, shared } = vault.config;

let app: TestApp;
afterEach(() => app?.close());

async function start(text: string): Promise<void> {
  const server = buildServer({ features: [vault], keyRing: { parameter } });
  app = await startTestApp(server, { secureParameters: { [parameter]: text } });
}

const ann: Caller = { id: "ann", tenantId: "acme", roles: [] };
const bob: Caller = { id: "bob", tenantId: "zenith", roles: [] };
const operator: Caller = { id: "ops", tenantId: "operations", roles: ["systemAdmin"] };

/** Replaces the ring; the running server comes to know of it as it would in an account. */
async function putRing(text: string): Promise<void> {
  const ssm = new SSMClient({
    endpoint: String(app.env["AWS_ENDPOINT_URL"]),
    region: String(app.env["AWS_REGION"]),
    credentials: { accessKeyId: "embedded", secretAccessKey: "embedded" },
  });
  await ssm.send(
    new PutParameterCommand({
      Name: parameter,
      Value: text,
      Type: "SecureString",
      Overwrite: true,
    }),
  );
  ssm.destroy();
}

/** Every item of a table, by default that of the configuration. */
async function storedItems(TableName = "keelson-config"): Promise<Record<string, unknown>[]> {
  const { db } = await app.ctx(operator);
  const { Items = [] } = await db.send(new ScanCommand({ TableName, ConsistentRead: true }));
  return Items;
}

/** The names of the keys that the rows are sealed with. */
async function sealingKeys(): Promise<string[]> {
  const values = (await storedItems()).map(({ value }) => value as { key?: string } | undefined);
  return [...new Set(values.flatMap((value) => value?.key ?? []))].sort();
}

/** Texts as they would be found whatever way they are printed. */
function printed(value: unknown): string {
  return JSON.stringify(value, (_name, part) =>
    part instanceof Uint8Array ? Buffer.from(part).toString("latin1") : part,
  );
}

async function read(caller: Caller) {
  const ctx = await app.ctx(caller);
  return [await ctx.config(token), await ctx.config(pin), await ctx.config(shared)];
}

/** Secrets of many tenants, sealed with the active key. */
async function setSecrets(tenants: number): Promise<void> {
  for (let n = 0; n < tenants; n++) {
    const ctx = await app.ctx({ id: `user-${n}`, tenantId: `tenant-${n}` });
    await setConfig(ctx, token, `token-${n}`);
    await setConfig(ctx, pin, n + 1);
  }
  await setConfig(await app.ctx(operator), shared, "for all");
}

async function expectSecrets(tenants: number): Promise<void> {
  for (let n = 0; n < tenants; n++) {
    expect(await read({ id: `user-${n}`, tenantId: `tenant-${n}` })).toEqual([
      `token-${n}`,
      n + 1,
      "for all",
    ]);
  }
}

test("no secret appears in any response, log line, history or stored item of a full run", async () => {
  await start(ring("k1"));
  const secrets = [
    "hunter2-of-acme",
    "hunter3-of-acme",
    "hunter4-of-zenith",
    "hunter5-of-all",
    "987654321",
    "123454321",
  ];
  const answers: unknown[] = [];
  const call = async (as: Caller, method: string, path: string, body?: object) => {
    // Each under an ID of its own, so that what writes leave in the table of claims is searched as well.
    const headers = { "idempotency-key": `k${answers.length}` };
    const response = await app.fetch(path, {
      as,
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    });
    answers.push(response.status, [...response.headers], await response.text());
  };
  const path = ({ id }: { id: string }, rest = "") => `/config/${encodeURIComponent(id)}${rest}`;
  await call(ann, "PUT", path(token), { value: secrets[0] });
  await call(ann, "PUT", path(token), { value: secrets[1], reason: "rotated", expectedVersion: 1 });
  await call(ann, "PUT", path(token), { value: secrets[1], expectedVersion: 1 }); // a conflict
  await call(bob, "PUT", path(token), { value: secrets[2] });
  await call(operator, "PUT", path(shared), { value: secrets[3] });
  await call(ann, "PUT", path(pin), { value: Number(secrets[4]) });
  await call(ann, "PUT", path(pin), { value: secrets[5] }); // of another type
  await call(ann, "PUT", path(token), { value: { nested: secrets[1] } });
  await call(ann, "POST", path(token, "/undo"), { version: 1 });
  for (const caller of [ann, bob, operator]) {
    for (const key of [token, pin, shared]) {
      await call(caller, "GET", path(key));
      await call(caller, "GET", path(key, "/history"));
    }
    for (const route of ["/config", "/use", "/break", "/config?tenantId=acme&userId=ann"])
      await call(caller, "GET", route);
  }
  app.faults.before("TransactWriteItems", 1).fail("InternalServerError");
  await call(ann, "PUT", path(token), { value: secrets[1] });
  await app.rows.put({
    scope: "tenant",
    tenantId: "acme",
    key: token.id,
    value: "unsealed",
    version: 9,
  });
  await call(ann, "GET", "/use");
  await call(bob, "PUT", `${path(token)}?value=${secrets[2]}`); // a value in the URL
  await call(bob, "DELETE", path(token));
  await putRing(ring("k2", "k1"));
  app.clock.advance(10_000);
  await rotateConfigKeys(await app.ctx(operator), {
    onProgress: (progress) => void answers.push(progress),
  });

  expect(answers.filter((part) => part === 200).length).toBeGreaterThan(20);
  const everything = printed([
    answers,
    app.logs,
    await storedItems(),
    await storedItems("keelson-once"),
  ]);
  const inUse = app.logs.filter(({ msg }) => msg === "about to break");
  expect(inUse.length).toBeGreaterThan(0);
  for (const secret of [...secrets, ...Object.values(keys)])
    expect(everything.includes(secret)).toBe(false);
});

test("a sealed value moved to another tenant, user or key does not decrypt: the read fails, without a fallback", async () => {
  await start(ring("k1"));
  await setConfig(await app.ctx(ann), token, "hunter2");
  await setConfig(await app.ctx(operator), shared, "for all");
  const value = (await storedItems()).find(({ pk }) => pk === "config#tenant#acme")?.["value"];
  await app.rows.put({ scope: "tenant", tenantId: "zenith", key: token.id, value });
  await app.rows.put({ scope: "system", key: shared.id, value, version: 5 });

  const response = await app.fetch("/use", { as: bob });
  expect(response.status).toBe(503);
  expect(await response.json()).toMatchObject({ error: "config_unavailable" });
  expect(app.logs).toContainEqual(
    expect.objectContaining({ msg: "request.failed", error: "config_unavailable" }),
  );
  const explained = await app.fetch(`/config/${encodeURIComponent(token.id)}`, { as: bob });
  expect(await explained.json()).toMatchObject({
    levels: [
      {
        source: "tenant-row",
        isSet: true,
        active: true,
        note: expect.stringContaining("cannot be opened"),
      },
      {},
      {},
      {},
    ],
  });
  await setConfig(await app.ctx(bob), token, "their own");
  expect(await (await app.ctx(bob)).config(token)).toBe("their own");
  await expect((await app.ctx(ann)).config(shared)).rejects.toMatchObject({
    code: "config_unavailable",
  });
});

test("a row sealed by another process with a newer key is readable once the ring has been refreshed", async () => {
  await start(ring("k1"));
  await setConfig(await app.ctx(ann), token, "old");
  await putRing(ring("k2", "k1"));
  app.clock.advance(10_000);
  await setConfig(await app.ctx(ann), token, "new"); // reads the ring, as it is ten seconds old
  expect(await sealingKeys()).toEqual(["k2"]);
  expect(app.calls["GetParameter"]).toBe(2);

  const sealed = (await storedItems()).find(({ pk }) => pk === "config#tenant#acme")?.["value"];
  await app.close();
  await start(ring("k1"));
  await app.rows.put({ scope: "tenant", tenantId: "acme", key: token.id, value: sealed });
  await expect((await app.ctx(ann)).config(token)).rejects.toMatchObject({
    code: "config_unavailable",
  });
  await putRing(ring("k2", "k1"));
  await expect((await app.ctx(ann)).config(token)).rejects.toMatchObject({
    code: "config_unavailable",
  });
  expect(app.calls["GetParameter"]).toBe(1);
  app.clock.advance(10_000);
  expect(await (await app.ctx(ann)).config(token)).toBe("new");
  expect(app.calls["GetParameter"]).toBe(2);
});

const cuts = [
  ["before", "Scan", "fail"],
  ["after", "Scan", "loseAnswer"],
  ["before", "UpdateItem", "fail"],
  ["after", "UpdateItem", "loseAnswer"],
  ["before", "GetParameter", "fail"],
] as const;

test.each(cuts)(
  "a rotation that is interrupted %s each %s in turn can be restarted, and all values stay readable",
  async (moment, operation, what) => {
    const tenants = 3;
    await start(ring("k1"));
    await setSecrets(tenants);
    let activeKey: KeyName = "k1";
    for (let call = 1; ; call++) {
      const oldKey: KeyName = activeKey;
      activeKey = activeKey === "k1" ? "k2" : "k1";
      await putRing(ring(activeKey, oldKey));
      app.clock.advance(10_000);
      const made = app.calls[operation] ?? 0;
      if (what === "fail") app.faults.before(operation, call).fail("InternalServerError");
      else app.faults[moment](operation, call).loseAnswer();
      const cut = await rotateConfigKeys(await app.ctx(operator)).catch((error: unknown) => error);
      if ((app.calls[operation] ?? 0) - made < call) break; // it has no such call
      expect(cut).toMatchObject({ code: "config_unavailable" });
      await expectSecrets(tenants);

      app.clock.advance(10_000);
      const { resealed, locked, overtaken } = await rotateConfigKeys(await app.ctx(operator));
      expect([locked, overtaken]).toEqual([0, 0]);
      expect(resealed).toBeLessThanOrEqual(2 * tenants + 1);
      expect(await sealingKeys()).toEqual([activeKey]);
    }
    await putRing(ring(activeKey));
    app.clock.advance(60_000);
    await expectSecrets(tenants);
  },
);

test("a rotation reports each page, resumes where it stopped, and skips values sealed with the active key", async () => {
  await start(ring("k1"));
  await setSecrets(60);
  await putRing(ring("k2", "k1"));
  app.clock.advance(10_000);

  const seen: RotationProgress[] = [];
  const stop = rotateConfigKeys(await app.ctx(operator), {
    onProgress: (progress) => {
      seen.push(progress);
      throw new Error("stopped");
    },
  });
  await expect(stop).rejects.toThrow("stopped");
  const [first] = seen;
  expect(first).toMatchObject({
    activeKey: "k2",
    scanned: 100,
    locked: 0,
    next: expect.any(String),
  });

  const rest = await rotateConfigKeys(await app.ctx(operator), {
    from: first?.next,
    onProgress: (progress) => void seen.push(progress),
  });
  expect(Number(first?.resealed) + rest.resealed).toBe(121);
  expect(rest).not.toHaveProperty("next");
  expect(seen.length).toBeGreaterThan(2);
  expect(await rotateConfigKeys(await app.ctx(operator))).toMatchObject({
    scanned: 242,
    resealed: 0,
    overtaken: 0,
    locked: 0,
  });
  await expectSecrets(60);
  await expect(
    rotateConfigKeys(await app.ctx(operator), { from: "nowhere" }),
  ).rejects.toMatchObject({
    fields: [{ field: "from" }],
  });
  await expect(rotateConfigKeys(await app.ctx(ann))).rejects.toMatchObject({ status: 403 });
});

test("a concurrent write is not overwritten, and a row that does not decrypt is counted and named", async () => {
  await start(ring("k1"));
  await setConfig(await app.ctx(ann), token, "old");
  await setConfig(await app.ctx(bob), token, "bob's");
  const foreign = (await storedItems()).find(({ pk }) => pk === "config#tenant#zenith")?.["value"];
  await app.rows.put({ scope: "tenant", tenantId: "moved", key: token.id, value: foreign });
  await putRing(ring("k2", "k1"));
  app.clock.advance(10_000);

  app.faults.before("UpdateItem", 1).delay(500);
  app.faults.before("UpdateItem", 2).delay(4_000);
  const rotation = rotateConfigKeys(await app.ctx(operator));
  await expect.poll(() => app.calls["UpdateItem"]).toBeGreaterThan(0);
  await setConfig(await app.ctx(ann), token, "new");
  await setConfig(await app.ctx(bob), token, "bob's new");
  const { overtaken, locked } = await rotation;

  expect(overtaken).toBeGreaterThan(0);
  expect(locked).toBe(1);
  expect(app.logs).toContainEqual(
    expect.objectContaining({
      msg: "config.secret_locked",
      partition: "config#tenant#moved",
      key: token.id,
      ringKey: "k1",
    }),
  );
  expect(await (await app.ctx(ann)).config(token)).toBe("new");
  expect(await (await app.ctx(bob)).config(token)).toBe("bob's new");
});

test("a sealed value copied into the table of another prefix does not decrypt there", async () => {
  await start(ring("k1"));
  await setConfig(await app.ctx(ann), token, "hunter2");
  const value = (await storedItems()).find(({ pk }) => pk === "config#tenant#acme")?.["value"];
  await app.close();
  const server = buildServer({
    features: [vault],
    keyRing: { parameter },
    dynamodb: { prefix: "other" },
  });
  app = await startTestApp(server, { secureParameters: { [parameter]: ring("k1") } });
  await app.rows.put({ scope: "tenant", tenantId: "acme", key: token.id, value });
  await expect((await app.ctx(ann)).config(token)).rejects.toMatchObject({
    code: "config_unavailable",
  });
});

test("a rotation over several pages that stops anywhere resumes from there", async () => {
  await start(ring("k1"));
  await setSecrets(60);
  await putRing(ring("k2", "k1"));
  let from: string | undefined;
  let resealed = 0;
  for (let n = 1; ; n++) {
    const last: RotationProgress[] = [];
    app.faults.before("UpdateItem", 30).fail("InternalServerError");
    const run = rotateConfigKeys(await app.ctx(operator), {
      from,
      onProgress: (progress) => void last.push(progress),
    });
    const done = await run.catch(() => undefined);
    resealed += last.at(-1)?.resealed ?? 0;
    if (done !== undefined) break;
    from = last.at(-1)?.next ?? from;
    expect(n).toBeLessThan(20);
  }
  expect(resealed).toBeGreaterThan(0);
  expect(await rotateConfigKeys(await app.ctx(operator))).toMatchObject({
    resealed: 0,
    overtaken: 0,
    locked: 0,
  });
  await expectSecrets(60);
});

test("a secret that was reset or replaced is gone, and cannot be restored", async () => {
  await start(ring("k1"));
  const ctx = await app.ctx(ann);
  await setConfig(ctx, token, "hunter2");
  await resetConfig(ctx, token);
  expect(await (await app.ctx(ann)).config(token)).toBeUndefined();
  expect(await sealingKeys()).toEqual([]);
  await expect(undoConfig(ctx, token)).rejects.toMatchObject({
    status: 422,
    fields: [{ field: "version" }],
  });
  await setConfig(ctx, token, "hunter3");
  await undoConfig(ctx, token); // to the reset before
  expect(await (await app.ctx(ann)).config(token)).toBeUndefined();
});

test("an unreadable ring fails only writes of secrets", async () => {
  await start(ring("k1"));
  await setConfig(await app.ctx(ann), token, "hunter2");
  app.clock.advance(10_000);
  app.faults.before("GetParameter", 1).fail("ThrottlingException");
  await expect(setConfig(await app.ctx(ann), token, "hunter3")).rejects.toMatchObject({
    code: "config_unavailable",
  });
  expect(await (await app.ctx(ann)).config(token)).toBe("hunter2");
});
