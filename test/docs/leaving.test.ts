import { randomBytes, randomUUID } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { access, buildServer, createTenantConfig, createUserConfig, defineFeature } from "keelson";
import { setConfig } from "keelson/operators";
import { type Caller, startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { nameOf, writeBlocks } from "./compile.ts";
import { allBlocks, textOf } from "./markdown.ts";

// docs/leaving.md: its script reads every kind of row, of an application that stores each of them.

interface Found {
  readonly table: string;
  readonly kind: string;
  readonly row: Readonly<Record<string, unknown>>;
  readonly content: unknown;
}
type ReadEverything = (
  client: DynamoDBClient,
  prefix?: string,
  ring?: string,
) => AsyncIterable<Found>;

const large = randomBytes(400_000).toString("base64");
const orders = defineFeature("orders", (r) => {
  const config = r.config({
    keys: {
      limit: createUserConfig("number", { default: 1 }),
      apiKey: createTenantConfig("text", { encrypted: true }),
    },
  });
  const table = r.table("orders", { partitionKey: "pk", sortKey: "sk", tenant: true });
  const placed = r.event("purchase.placed", z.object({ text: z.string() }), { keepDays: 30 });
  const prints = r.rateLimit("prints", { per: "tenant", requests: 1, window: "day" });
  const print = r.job("order.print", {
    input: z.object({ id: z.string() }),
    concurrency: { perTenant: 1 },
    order: ({ id }) => id,
    handler: (ctx) => ctx.rateLimit.take(prints),
  });
  const remind = r.job("order.remind", {
    input: z.object({ id: z.string() }),
    handler: async () => {},
  });
  r.on(placed, {
    name: "charge",
    handler: async (ctx) => {
      await ctx.step("charge", { ifUnknown: "retry" }, async () => ({ paid: true }));
      await ctx.step("receipt", { ifUnknown: "retry" }, async () => ({ text: large }));
    },
  });
  r.projection("order.totals", { version: 1, on: [[placed, async () => []]] });
  const storage = r.quota("storage", { limit: 10, window: "day" });
  r.schedule("order.tidy", { cron: "0 0 * * *", for: "tenants", handler: async () => {} });
  const rule = { access: access.authenticated };
  r.write("order.place", {
    ...rule,
    route: "POST /orders",
    input: z.object({ text: z.string() }),
    rateLimit: { per: "tenant", requests: 100, window: "day" },
    handler: async (ctx, { text }) => {
      await ctx.publish(placed, { text });
      await storage.add(ctx, 3);
      await ctx.enqueue(remind, { id: "7" }, { delaySeconds: 86_400 });
      const Item = { ...table.key(ctx, "orders", "7"), text };
      return ctx.commit([{ Put: { TableName: table.name, Item } }], { id: "7", text });
    },
  });
  const sized = r.event("purchase.sized", z.object({ text: z.string() }));
  r.write("order.size", {
    ...rule,
    route: "POST /sizes",
    handler: async (ctx) => {
      await ctx.publish(sized, { text: large });
      return ctx.commit([], { text: large });
    },
  });
  r.write("order.secret", {
    ...rule,
    route: "POST /secrets",
    replay: "encrypted",
    handler: async () => ({ code: "4711" }),
  });
  r.write("order.print-all", {
    ...rule,
    route: "POST /prints",
    input: z.object({ id: z.string() }),
    handler: async (ctx, { id }) => {
      await ctx.enqueue(print, { id });
      await ctx.enqueue(remind, { id });
      return {};
    },
  });
  return { config };
});

const ring = JSON.stringify({ active: "k1", keys: { k1: randomBytes(32).toString("base64") } });
const server = buildServer({
  features: [orders],
  tenants: true,
  auth: { secret: "s".repeat(32), apiKeys: true },
  keyRing: { parameter: "/leaving/ring", bindVersion: true },
});
const ann: Caller = { id: "ann", tenantId: "acme", roles: ["admin", "systemAdmin"] };

const written = writeBlocks(
  allBlocks().filter((block) => block.document === "docs/leaving.md" && nameOf(block)),
);
afterAll(() => written.remove());
let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(server, { secureParameters: { "/leaving/ring": ring } });
});
afterAll(() => app.close());

const post = async (path: string, body: object = {}, key: string = randomUUID()) => {
  const headers = { "idempotency-key": key };
  const response = await app.fetch(path, { method: "POST", as: ann, body, headers });
  if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
};

/** Leaves at least one row of each kind. */
async function storeEverything(): Promise<void> {
  await server.tenants.create({ id: "acme", name: "Acme" });
  await post("/api-keys", { name: "billing", roles: ["admin"] });
  await post("/orders", { text: "small" });
  await post("/secrets", {}, `order#${randomUUID()}#1`);
  await post("/secrets", {}, '"alarm fires"');
  await post("/secrets");
  const ctx = await app.ctx(ann);
  await setConfig(ctx, orders.config.limit, 5, { tenantId: "acme", reason: "a test" });
  await setConfig(ctx, orders.config.apiKey, "sk-1", { tenantId: "acme", reason: "a test" });
  await app.settled();

  // The bus refuses an event, and a job waits for a rate limit.
  app.faults.before("PutEvents", 1).fail("InternalFailure");
  await post("/sizes");
  app.faults.before("PutEvents", 1).fail("ValidationException");
  for (const id of ["7", "8"]) await post("/prints", { id });
  await app.settled().catch(() => {});

  app.faults.before("PutEvents", 1).fail("InternalFailure");
  await post("/sizes");
}

test("the script reads every kind of row with the AWS SDK alone", async () => {
  await storeEverything();
  const [file] = written.files;
  const { readEverything }: { readEverything: ReadEverything } = await import(
    /* @vite-ignore */ String(file?.path)
  );
  const client = new DynamoDBClient({
    endpoint: String(app.env["AWS_ENDPOINT_URL"]),
    region: "us-east-1",
    credentials: { accessKeyId: "x", secretAccessKey: "x" },
  });
  const found: Found[] = [];
  for await (const row of readEverything(client, "keelson", ring)) found.push(row);
  const contentsOf = (kind: string) =>
    found.flatMap((row) => (row.kind === kind ? (row.content ?? []) : []));
  const partsOf = (kind: string, { pk, sk }: Found["row"], name: string) =>
    found
      .filter(({ row }) =>
        kind === "part"
          ? row["pk"] === `part#${pk}#${sk}`
          : row["pk"] === pk && String(row["sk"]).startsWith(`${sk}#`),
      )
      .sort(
        (one, other) =>
          Number(String(one.row["sk"]).split("#").at(-1)) -
          Number(String(other.row["sk"]).split("#").at(-1)),
      )
      .map(({ row }) => row[name]);

  // Each kind of the page, and no other.
  const documented = [...textOf("docs/leaving.md").matchAll(/^\| [\w-]+ \| `([\w-]+)` \|/gm)];
  expect([...new Set(found.map(({ kind }) => kind))].sort()).toEqual(
    documented.map(([, kind]) => kind).sort(),
  );

  expect(contentsOf("value").sort()).toEqual([5, "sk-1"]);
  expect(contentsOf("event")).toMatchObject([
    { type: "purchase.placed", payload: { text: "small" } },
  ]);
  expect(contentsOf("waiting")).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ name: "orders.order.remind", payload: { id: "7" } }),
      expect.objectContaining({ name: "orders.order.print", payload: { id: "8" } }),
    ]),
  );
  expect(contentsOf("step")).toMatchObject([{ body: '{"paid":true}' }]);
  const bodies = contentsOf("claim").flatMap(
    (content) => (content as { body?: string }).body ?? [],
  );
  expect(bodies).toEqual(expect.arrayContaining(['{"code":"4711"}', '{"id":"7","text":"small"}']));
  expect(bodies.filter((body) => body === '{"code":"4711"}')).toHaveLength(3);

  const message = found.find(({ kind, row }) => kind === "waiting" && row["parts"] !== undefined);
  const text = partsOf("part", message?.row ?? {}, "envelope").join("");
  expect(JSON.parse(text)).toMatchObject({ type: "purchase.sized", payload: { text: large } });
  for (const stored of ["claim", "step"]) {
    const inParts = found.find(({ kind, row }) => kind === stored && row["parts"] !== undefined);
    const data = Buffer.concat(partsOf("claim-part", inParts?.row ?? {}, "data") as Uint8Array[]);
    expect(JSON.parse(String(gunzipSync(data.subarray(1))))).toMatchObject({
      body: JSON.stringify({ text: large }),
    });
  }
});
