import { randomBytes } from "node:crypto";
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { serverInternals } from "../../src/app/server/server.ts";
import { tenantSources } from "../../src/app/tenants/tenant-source.ts";
import { eraseTenant, exportTenant } from "../../src/app/tenants/walk.ts";
import { accountOf } from "../../src/aws/adapters/adapters.ts";
import { openDatabase } from "../../src/aws/clients/dynamodb.ts";
import { dynamoTenantRows } from "../../src/aws/stores/tenant-rows.ts";
import { newRingKey } from "../../src/base/secrets/key-ring.ts";
import {
  access,
  buildServer,
  createTenantConfig,
  createUserConfig,
  defineFeature,
} from "../../src/index.ts";
import { setConfig } from "../../src/parts/config/operate/change.ts";
import { startTestApp, type TestApp } from "../../src/tools/testing/index.ts";

declare module "../../src/base/types/names.ts" {
  interface Events {
    "crate.packed": { name: string };
  }
  interface Jobs {
    "crates.crate.ship": { name: string };
  }
}

const crates = defineFeature("crates", (r) => {
  const rules = { read: access.authenticated, write: access.authenticated };
  const { limit, pin } = r.config({
    keys: {
      limit: createUserConfig("number", { default: 1 }),
      pin: createTenantConfig("text", { encrypted: true, ...rules }),
    },
  });
  r.event("crate.packed", z.object({ name: z.string() }));
  r.on("crate.packed", { name: "count", handler: async () => undefined });
  r.job("crate.ship", { input: z.object({ name: z.string() }), handler: async () => undefined });
  r.write("crate.pack", {
    input: z.object({ name: z.string() }),
    handler: async (ctx, { name }) => {
      await ctx.publish("crate.packed", { name });
      await ctx.enqueue("crates.crate.ship", { name });
      return { label: randomBytes(400_000).toString("base64") };
    },
  });
  r.write("pin.set", {
    replay: "encrypted",
    handler: async (ctx) => {
      await setConfig(ctx, pin, "the pin of acme");
      return { told: "the pin of acme" };
    },
  });
  r.write("limit.raise", {
    once: false,
    handler: async (ctx) => {
      await setConfig(ctx, limit, 2, { scope: "tenant" });
      await setConfig(ctx, limit, 3);
      await setConfig(ctx, limit, 4, { scope: "system" });
      return {};
    },
  });
});

const server = buildServer({
  features: [crates],
  log: { level: "error" },
  keyRing: { parameter: "/ring" },
});
const ann = { id: "ann", tenantId: "acme", roles: ["systemAdmin"] };
let app: TestApp;
beforeAll(async () => {
  const ring = JSON.stringify({ active: "k1", keys: { k1: newRingKey() } });
  app = await startTestApp(server, { secureParameters: { "/ring": ring } });
});
afterAll(() => app.close());

async function owners(table: string): Promise<Record<string, unknown>> {
  const { db } = await app.ctx(ann);
  const { Items = [] } = await db.send(new ScanCommand({ TableName: `keelson-${table}` }));
  return Object.fromEntries(Items.map(({ pk, sk, tenantId }) => [`${pk} ${sk}`, tenantId]));
}

test("claims, parts of their answers and waiting events name their tenant, if any", async () => {
  app.faults.before("PutEvents", 1).fail("ServiceUnavailable");
  await app.call("crates.crate.pack", { name: "a" }, { as: ann, requestId: "r1" });
  const [written, waiting] = [await owners("once"), await owners("outbox")];
  // The write's claim and parts of its answer, and the mark of its job.
  expect(Object.values(written)).toEqual(["acme", "acme", "acme", "acme"]);
  expect(Object.values(waiting)).toEqual(["acme"]);
  await app.settled();
  expect(Object.values(await owners("outbox"))).toEqual([]);
  // The write's four, its event's and its job's.
  expect(Object.values(await owners("once"))).toEqual(Array.from({ length: 6 }, () => "acme"));
});

test("the claim of a run without a request, and its steps, name their tenant", async () => {
  const before = Object.keys(await owners("once"));
  const options = { reason: "a test", tenantId: "acme", requestId: "r1" };
  await server.run(options, (ctx) => ctx.step("pack", { ifUnknown: "retry" }, () => "packed"));
  const rows = Object.entries(await owners("once")).filter(([key]) => !before.includes(key));
  expect(rows.sort()).toEqual([
    [expect.stringMatching(/ dedup:r1$/), "acme"],
    [expect.stringMatching(/^step:/), "acme"],
  ]);
});

test("rows of tenants and users, and their history, name their tenant", async () => {
  await app.call("crates.limit.raise", {}, { as: ann });
  expect(await owners("config")).toEqual({
    "config#tenant#acme crates:config:limit": "acme",
    "history#config#tenant#acme crates:config:limit#0000000000000001": "acme",
    "config#user#acme#ann crates:config:limit": "acme",
    "history#config#user#acme#ann crates:config:limit#0000000000000001": "acme",
    "config#system crates:config:limit": undefined,
    "history#config#system crates:config:limit#0000000000000001": undefined,
  });
});

test("an export contains no secret and no encrypted replay, and an erasure deletes them", async () => {
  await app.call("crates.pin.set", {}, { as: ann, requestId: "r2" });
  const database = await openDatabase({
    endpoint: app.env["AWS_ENDPOINT_URL"],
    ...accountOf(app.env),
  });
  try {
    const rows = dynamoTenantRows(database, { wait: async () => undefined });
    const work = {
      ...tenantSources(serverInternals(server), "acme", app.env),
      rows,
      keep: async () => undefined,
    };
    const written: string[] = [];
    const write = async (lines: string) => void written.push(lines);
    await exportTenant({ ...work, write });
    const lines = written
      .join("")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    const [pin] = lines.filter(
      ({ item }) => item.pk.S === "config#tenant#acme" && item.sk.S === "crates:config:pin",
    );
    expect(pin.item.value).toEqual({ M: { secret: { BOOL: true } } });
    const answers = lines.flatMap(({ table, item }) =>
      table === "once" && item.data ? [Buffer.from(item.data.B, "base64")] : [],
    );
    expect(answers.length).toBeGreaterThan(0);
    expect(
      [...answers.map(String), ...written].filter((text) => text.includes("the pin of acme")),
    ).toEqual([]);
    expect((await eraseTenant({ ...work, isDryRun: false })).isDone).toBe(true);
  } finally {
    database.destroy();
  }
  const left = [...Object.values(await owners("once")), ...Object.values(await owners("outbox"))];
  expect([left, Object.keys(await owners("config"))]).toEqual([
    [],
    expect.not.arrayContaining([expect.stringMatching("acme")]),
  ]);
});
