import { PutParameterCommand, SSMClient } from "@aws-sdk/client-ssm";
import { GetCommand, ScanCommand } from "@aws-sdk/lib-dynamodb";
import { access, buildServer, createTenantConfig, defineFeature } from "keelson";
import { resetConfig, rotateConfigKeys, setConfig, undoConfig } from "keelson/operators";
import { type Caller, startTestApp, type TestApp } from "keelson/testing";
import { afterEach, expect, test } from "vitest";
import { createContext } from "../../src/app/ctx/context.ts";
import { runInScope } from "../../src/app/runtime/scope.ts";
import { createRuntime } from "../../src/app/server/create-runtime.ts";
import { openAwsAdapters } from "../../src/aws/adapters/adapters.ts";
import { newRingKey } from "../../src/base/secrets/key-ring.ts";

const parameter = "/vault/key-ring";
const keys = { k1: newRingKey(), k2: newRingKey() };
const ring = (active: keyof typeof keys) => JSON.stringify({ active, keys });

const vault = defineFeature("vault", (r) => {
  const rules = { read: access.authenticated, write: access.authenticated };
  const config = r.config({
    keys: {
      token: createTenantConfig("text", { encrypted: true, default: "nobody's", ...rules }),
      other: createTenantConfig("text", { encrypted: true, ...rules }),
    },
  });
  r.query("secrets.use", {
    route: "GET /use",
    access: access.authenticated,
    handler: async (ctx) => ({ token: await ctx.config(config.token) }),
  });
  return { config };
});
const { token, other } = vault.config;
const path = `/config/${encodeURIComponent(token.id)}`;

const ann: Caller = { id: "ann", tenantId: "acme", roles: [] };
const operator: Caller = { id: "ops", tenantId: "operations", roles: ["systemAdmin"] };
const row = { scope: "tenant", tenantId: "acme", key: token.id } as const;

type Process = Pick<TestApp, "ctx">;

let app: TestApp;
let closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.reverse()) await close();
  closing = [];
});

const serverOf = (bindVersion: boolean) =>
  buildServer({
    features: [vault],
    keyRing: { parameter, bindVersion },
    cache: { ttlMs: 0, maxStaleMs: 0 },
  });

/** Starts a server that binds. */
async function start(): Promise<void> {
  app = await startTestApp(serverOf(true), { secureParameters: { [parameter]: ring("k1") } });
  closing.push(app.close);
}

/** One that does not, beside it on the same table. */
function startPlain(): Process {
  const runtime = createRuntime(serverOf(false), {
    variables: app.env,
    clock: app.clock,
    openAdapters: (opened) => openAwsAdapters(opened, app.env),
    write: (line) => plainLines.push(line),
  });
  closing.push(runtime.close);
  return {
    ctx: async ({ id, tenantId, roles = [] }) =>
      runInScope(
        runtime,
        { headers: { "x-request-id": "r" }, signal: undefined },
        async (scope) => {
          scope.handler = "h";
          scope.user = { id, tenantId, roles: [...roles], kind: "user" };
          return createContext(scope, await runtime.adapters.open(), {});
        },
      ),
  };
}
const plainLines: string[] = [];

async function activate(key: keyof typeof keys): Promise<void> {
  const credentials = { accessKeyId: "embedded", secretAccessKey: "embedded" };
  const ssm = new SSMClient({
    endpoint: String(app.env["AWS_ENDPOINT_URL"]),
    region: "us-east-1",
    credentials,
  });
  await ssm.send(
    new PutParameterCommand({
      Name: parameter,
      Value: ring(key),
      Type: "SecureString",
      Overwrite: true,
    }),
  );
  ssm.destroy();
  app.clock.advance(10_000);
}

async function put(process: Process, value: string): Promise<void> {
  await setConfig(await process.ctx(ann), token, value);
}

async function use(process: Process): Promise<unknown> {
  app.clock.advance(1); // past what is cached
  return (await process.ctx(ann)).config(token).catch(({ code }: { code: string }) => code);
}

async function stored(): Promise<Record<string, unknown>> {
  const { db } = await app.ctx(operator);
  const { Item = {} } = await db.send(
    new GetCommand({
      TableName: "keelson-config",
      Key: { pk: "config#tenant#acme", sk: token.id },
      ConsistentRead: true,
    }),
  );
  return Item;
}

/** How the secrets are sealed. */
async function forms(): Promise<unknown[]> {
  const { db } = await app.ctx(operator);
  const { Items = [] } = await db.send(
    new ScanCommand({ TableName: "keelson-config", ConsistentRead: true }),
  );
  const values = Items.flatMap(({ value }) =>
    typeof value === "object" ? [value as Record<string, unknown>] : [],
  );
  return values.map(({ sealed, bound, key }) => [sealed, bound, key]);
}

const unbound = () => app.logs.filter(({ msg }) => msg === "config.secret_unbound");

test("an older value restored into the same row does not decrypt: the read fails, without a fallback to another level", async () => {
  await start();
  await put(app, "leaked");
  const { value: older } = await stored();
  await put(app, "fresh");
  expect(await use(app)).toBe("fresh");

  await app.rows.put({ ...row, value: older, version: 2 });
  expect((await app.fetch("/use", { as: ann })).status).toBe(503);
  expect(await (await app.fetch(path, { as: ann })).json()).toMatchObject({
    levels: [
      {
        source: "tenant-row",
        active: true,
        version: 2,
        note: expect.stringContaining("bound to the version of its row: 2"),
      },
      {},
      {},
      {},
    ],
  });
  expect(await rotateConfigKeys(await app.ctx(operator))).toMatchObject({ resealed: 0, locked: 0 });
  await activate("k2");
  expect(await rotateConfigKeys(await app.ctx(operator))).toMatchObject({ resealed: 0, locked: 1 });
  expect(await use(app)).toBe("config_unavailable");

  await put(app, "set again");
  expect(await use(app)).toBe("set again");
});

test("each write seals for the version it creates: a set after a reset, a concurrent write, an undo", async () => {
  await start();
  const ctx = await app.ctx(ann);
  await setConfig(ctx, token, "one");
  await resetConfig(ctx, token);
  expect(await use(app)).toBe("nobody's");
  await setConfig(ctx, token, "three");
  expect([await use(app), (await stored())["version"]]).toEqual(["three", 3]);
  await undoConfig(ctx, token); // to the reset before
  expect(await use(app)).toBe("nobody's");
  const writers = [await app.ctx(ann), await app.ctx(ann), await app.ctx(ann)];
  await Promise.all(writers.map((writer, index) => setConfig(writer, token, `writer ${index}`)));
  expect(await use(app)).toMatch(/^writer \d$/);
  expect((await stored())["version"]).toBe(7);
});

test("servers with and without the option read each other's values, and write their own form", async () => {
  await start();
  const plain = startPlain();
  await put(plain, "plain");
  expect([await use(plain), await use(app), await forms()]).toEqual([
    "plain",
    "plain",
    [[1, undefined, "k1"]],
  ]);
  await put(app, "bound");
  expect([await use(plain), await use(app), await forms()]).toEqual([
    "bound",
    "bound",
    [[1, "version", "k1"]],
  ]);
  await put(plain, "plain again");
  expect([await use(plain), await use(app), await forms()]).toEqual([
    "plain again",
    "plain again",
    [[1, undefined, "k1"]],
  ]);
});

test("one rotation binds all rows to their current versions, even those of the active key", async () => {
  await start();
  const plain = startPlain();
  await put(plain, "one");
  await put(plain, "two");
  await setConfig(await plain.ctx(ann), other, "other");
  expect(await rotateConfigKeys(await plain.ctx(operator))).toMatchObject({
    resealed: 0,
    overtaken: 0,
    locked: 0,
  });

  expect(await rotateConfigKeys(await app.ctx(operator))).toMatchObject({
    activeKey: "k1",
    resealed: 2,
    overtaken: 0,
    locked: 0,
  });
  expect(await forms()).toEqual([
    [1, "version", "k1"],
    [1, "version", "k1"],
  ]);
  expect(await rotateConfigKeys(await app.ctx(operator))).toMatchObject({ resealed: 0 });
  expect([await use(plain), await use(app), (await stored())["version"]]).toEqual([
    "two",
    "two",
    2,
  ]);

  // Who does not bind changes the key, and leaves the binding.
  await activate("k2");
  expect(await rotateConfigKeys(await plain.ctx(operator))).toMatchObject({
    activeKey: "k2",
    resealed: 2,
    locked: 0,
  });
  expect(await forms()).toEqual([
    [1, "version", "k2"],
    [1, "version", "k2"],
  ]);
  expect(await use(app)).toBe("two");
});

test("a binding server reads a value that is not bound, and logs it once per version", async () => {
  await start();
  const plain = startPlain();
  await put(plain, "old form");
  const { value: older } = await stored();
  expect([await use(app), await use(app)]).toEqual(["old form", "old form"]);
  expect(unbound()).toMatchObject([
    { level: "warn", key: token.id, source: "tenant-row", tenantId: "acme" },
  ]);

  await put(app, "new form");
  expect(await use(app)).toBe("new form");
  expect(unbound()).toHaveLength(1);
  // As long as this form is read it can be put back; that it was, is seen.
  await app.rows.put({ ...row, value: older, version: 2 });
  expect(await use(app)).toBe("old form");
  expect(unbound()).toHaveLength(2);
  expect(await use(plain)).toBe("old form");
  expect(plainLines.join()).not.toContain("config.secret_unbound");
});

test("a row that was stored without a version is bound as such, and stays readable", async () => {
  await start();
  const plain = startPlain();
  await put(plain, "by hand");
  const { value } = await stored();
  await app.rows.put({ ...row, value, version: undefined as never }); // safe: what somebody may have put there
  expect(await rotateConfigKeys(await app.ctx(operator))).toMatchObject({ resealed: 1 });
  expect(await use(plain)).toBe("by hand");
});
