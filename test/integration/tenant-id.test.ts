import { randomBytes } from "node:crypto";
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { buildServer, createUserConfig, defineFeature, setConfig } from "../../src/index.ts";
import { startTestApp, type TestApp } from "../../src/testing/index.ts";

declare module "../../src/context/names.ts" {
  interface Events {
    "crate.packed": { name: string };
  }
  interface Jobs {
    "crates.crate.ship": { name: string };
  }
}

const crates = defineFeature("crates", (r) => {
  const { limit } = r.config({ keys: { limit: createUserConfig("number", { default: 1 }) } });
  r.event("crate.packed", z.object({ name: z.string() }));
  r.on("crate.packed", "count", async () => undefined);
  r.job("crate.ship", { input: z.object({ name: z.string() }), handler: async () => undefined });
  r.write("crate.pack", {
    input: z.object({ name: z.string() }),
    handler: async (ctx, { name }) => {
      await ctx.publish("crate.packed", { name });
      await ctx.enqueue("crates.crate.ship", { name });
      return { label: randomBytes(400_000).toString("base64") };
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

const ann = { id: "ann", tenantId: "acme", roles: ["systemAdmin"] };
let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [crates], log: { level: "error" } }));
});
afterAll(() => app.close());

async function owners(table: string): Promise<Record<string, unknown>> {
  const { db } = await app.ctx(ann);
  const { Items = [] } = await db.send(new ScanCommand({ TableName: `keelson-${table}` }));
  return Object.fromEntries(Items.map(({ pk, sk, tenantId }) => [`${pk} ${sk}`, tenantId]));
}

test("claims, the parts of their answers and events that wait say which tenant they belong to, or none", async () => {
  app.faults.before("PutEvents", 1).fail("ServiceUnavailable");
  await app.call("crates.crate.pack", { name: "a" }, { as: ann, requestId: "r1" });
  const [written, waiting] = [await owners("once"), await owners("outbox")];
  expect(Object.values(written)).toEqual(["acme", "acme", "acme"]);
  expect(Object.values(waiting)).toEqual(["acme"]);
  await app.settled();
  expect(Object.values(await owners("outbox"))).toEqual([]);
  // The write's three, its event's and its job's.
  expect(Object.values(await owners("once"))).toEqual(["acme", "acme", "acme", "acme", "acme"]);
});

test("rows of tenants and users, and their history, say whose they are", async () => {
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
