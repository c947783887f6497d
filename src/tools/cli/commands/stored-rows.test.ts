import { PutParameterCommand, SSMClient } from "@aws-sdk/client-ssm";
import { paginateScan } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { defineFeature } from "../../../app/features/feature.ts";
import { buildServer, serverInternals } from "../../../app/server/server.ts";
import { openDatabase } from "../../../aws/clients/dynamodb.ts";
import {
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
} from "../../../parts/config/declare/declaration.ts";
import type { ConfigKeyHandle } from "../../../parts/config/declare/key.ts";
import { setConfig } from "../../../parts/config/operate/change.ts";
import { lockedKey } from "../../contract/locked-keys.ts";
import { startTestApp, type TestApp } from "../../testing/index.ts";
import { storedRows } from "./stored-rows.ts";

/** What is deployed. */
const shop = defineFeature("shop", (r) => ({
  config: r.config({
    keys: {
      limit: createTenantConfig("number", { default: 5, bounds: { min: 1, max: 100 } }),
      order: createUserConfig("select", { options: ["name", "newest", "size"], default: "name" }),
      size: createTenantConfig("number", { encrypted: true, bounds: { min: 1, max: 100 } }),
      note: createTenantConfig("text", {}),
      banner: createSystemConfig("text", {}),
      title: createTenantConfig("text", {}),
    },
  }),
}));
/** What is about to be. */
const next = defineFeature("shop", (r) => {
  r.config({
    keys: {
      maximum: createTenantConfig("number", {
        default: 5,
        bounds: { min: 1, max: 50 },
        formerly: "shop:config:limit",
      }),
      order: createUserConfig("select", { options: ["name", "newest"], default: "name" }),
      size: createTenantConfig("number", { encrypted: true, bounds: { min: 1, max: 50 } }),
      note: createTenantConfig("text", {}),
      title: createTenantConfig("number", {}),
    },
  });
});

const [deployed, released] = [buildServer({ features: [shop] }), buildServer({ features: [next] })];
const locked = [...deployed.registry.configKeys.values()].map(lockedKey);
let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(deployed);
  const set = async <Value>(
    tenantId: string,
    handle: ConfigKeyHandle<Value>,
    value: unknown,
    scope?: "system",
  ) => {
    const ctx = await app.ctx({ id: "ann", tenantId, roles: ["systemAdmin"] });
    await setConfig(ctx, handle as ConfigKeyHandle<unknown>, value, scope && { scope });
  };
  const { limit, order, size, note, banner, title } = shop.config;
  await set("acme", limit, 80);
  await set("umbrella", limit, 40);
  await set("acme", order, "size");
  await set("acme", order, "newest", "system");
  await set("acme", size, 90);
  await set("umbrella", size, 10);
  await set("um#brella", title, "seven");
  await set("acme", banner, "hello", "system");
  await set("acme", note, "x");
});
afterAll(() => app.close());

const look = (server = released, options: Partial<Parameters<typeof storedRows>[0]> = {}) =>
  storedRows({
    server: serverInternals(server),
    locked,
    env: app.env,
    clock: app.clock,
    ...options,
  });

test("lists and counts the stored rows of all tenants that a release would change, and writes nothing", async () => {
  const before = await everything();
  const { stored, ...rest } = await look();

  expect([...stored].sort((one, other) => (one.key < other.key ? -1 : 1))).toEqual([
    { key: "shop:config:banner", scope: "system", tenantId: null, verdict: "ignored", reads: null },
    { key: "shop:config:limit", scope: "tenant", tenantId: "acme", verdict: "clamped", reads: 50 },
    {
      key: "shop:config:order",
      scope: "user",
      tenantId: "acme",
      verdict: "fallback",
      reads: "newest",
    },
    {
      key: "shop:config:size",
      scope: "tenant",
      tenantId: "acme",
      verdict: "clamped",
      reads: "(secret)",
    },
    {
      key: "shop:config:title",
      scope: "tenant",
      tenantId: "um#brella",
      verdict: "fallback",
      reads: null,
    },
  ]);
  expect(rest).toEqual({
    counts: { clamped: 2, fallback: 2, ignored: 1 },
    rows: 9,
    unlisted: 0,
    unopened: 0,
  });
  expect(await everything()).toEqual(before);
});

test("reports no changes for the deployed server", async () => {
  expect(await look(deployed)).toEqual({
    stored: [],
    counts: { clamped: 0, fallback: 0, ignored: 0 },
    rows: 9,
    unlisted: 0,
    unopened: 0,
  });
});

test("rows beyond the limit are counted but not listed", async () => {
  const { stored, counts, unlisted } = await look(released, { limit: 2 });

  expect([stored.length, unlisted, counts]).toEqual([
    2,
    3,
    { clamped: 2, fallback: 2, ignored: 1 },
  ]);
});

test("reads a table of many pages to its end, and shows its progress", async () => {
  const value = "x".repeat(16_000);
  for (let tenant = 0; tenant < 80; tenant++) {
    await app.rows.put({
      scope: "tenant",
      tenantId: `many-${tenant}`,
      key: "shop:config:note",
      value,
    });
  }
  const shown: string[] = [];
  const { rows } = await look(released, { progress: (text) => shown.push(text) });

  expect(rows).toBe(89);
  expect(shown.length).toBeGreaterThan(2);
  expect(shown.at(0)).toMatch(/^keelson-config: [1-9]\d* rows read$/);
  expect(shown.at(-1)).toBe("");
});

test("reads overrides from code and SSM below the rows, as a server does", async () => {
  const server = buildServer({
    features: [next],
    config: { "shop:config:title": 7 },
    ssm: { path: "/release" },
  });
  const titleOf = async () =>
    (await look(server)).stored.find(({ key }) => key === "shop:config:title")?.reads;

  expect(await titleOf()).toBe(7);
  await putParameter("/release/shop/title", "8");
  expect(await titleOf()).toBe(8);
  await putParameter("/release/shop/title", "eight");
  await expect(look(server)).rejects.toThrow(
    /^the parameters below \/release are not valid: \/release\/shop\/title: /,
  );
});

test.each<[string, object, Record<string, string | undefined>]>([
  [
    "whose ring is not there",
    { keyRing: { parameter: "/no/ring" } },
    { KEELSON_AUTH_SECRET: undefined },
  ],
  [
    "whose ring cannot be read",
    { keyRing: { parameter: "/no/ring" } },
    { AWS_ENDPOINT_URL_SSM: "http://127.0.0.1:9" },
  ],
  ["that has no secret of development", {}, { KEELSON_AUTH_SECRET: "" }],
  ["in production", { environment: "production" }, {}],
])("counts the secrets of a server %s as unopened", async (_what, options, env) => {
  const server = buildServer({ features: [next], ...options });
  const { stored, unopened } = await look(server, { env: { ...app.env, ...env } });

  expect([unopened, stored.filter(({ key }) => key === "shop:config:size")]).toEqual([2, []]);
});

test("opens secrets with a ring made from the development secret when the server's ring does not exist", async () => {
  const server = buildServer({ features: [next], keyRing: { parameter: "/no/ring" } });

  expect((await look(server)).unopened).toBe(0);
});

test("fails when the table does not exist", async () => {
  const env = { ...app.env, KEELSON_TABLE_CONFIG: "nowhere" };

  await expect(storedRows({ server: serverInternals(released), locked, env })).rejects.toThrow(
    /^nowhere: ResourceNotFoundException: /,
  );
});

async function everything(): Promise<unknown> {
  const database = await openDatabase({ endpoint: app.env["AWS_ENDPOINT_URL"], ...account });
  const items: unknown[] = [];
  for await (const { Items = [] } of paginateScan(
    { client: database },
    { TableName: "keelson-config" },
  ))
    items.push(...Items);
  database.destroy();
  return items;
}

const account = { region: "us-east-1", credentials: { accessKeyId: "x", secretAccessKey: "x" } };

async function putParameter(name: string, value: string): Promise<void> {
  const ssm = new SSMClient({ endpoint: String(app.env["AWS_ENDPOINT_URL"]), ...account });
  await ssm.send(
    new PutParameterCommand({ Name: name, Value: value, Type: "String", Overwrite: true }),
  );
  ssm.destroy();
}
