// With `log.cost`, the lines of a tenant's runs add up to the charges of AWS.
import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { z } from "zod";
import { type EmbeddedStack, startEmbeddedStack } from "../../src/embedded/stack/index.ts";
import { access, buildServer, createUserConfig, defineFeature } from "../../src/index.ts";
import { startTestApp, type TestApp } from "../../src/tools/testing/index.ts";
import { waitFor } from "../support/wait-for.ts";
import { type Bill, type Meter, openMeter } from "./meter.ts";
import { textOf } from "./works.ts";

declare module "../../src/index.ts" {
  interface Events {
    "charged.stored": { text: string };
  }
}

const text = z.object({ text: z.string() });
let capacities: unknown[] = [];

const charged = defineFeature("charged", (r) => {
  const config = r.config({ keys: { size: createUserConfig("number", { default: 1 }) } });
  const table = r.table("charged", { partitionKey: "pk", tenant: true });
  const quota = r.quota("storage", { limit: 2, window: "forever" });
  r.query("item.show", {
    route: "GET /items",
    access: access.authenticated,
    rateLimit: { per: "tenant", requests: 100, window: "day" },
    handler: async (ctx) => {
      const given = { TableName: table.name, Key: table.key(ctx, "one") };
      const plain = await ctx.db.send(new GetCommand(given));
      const asking = await ctx.db.send(
        new GetCommand({ ...given, ReturnConsumedCapacity: "TOTAL" }),
      );
      capacities = [plain.ConsumedCapacity, asking.ConsumedCapacity?.CapacityUnits];
      return { size: await ctx.config(config.size) };
    },
  });
  r.event("charged.stored", text);
  const print = r.job("item.print", { input: text, handler: async () => undefined });
  r.write("item.create", {
    route: "POST /items",
    access: access.authenticated,
    input: text,
    handler: async (ctx, input) => {
      await quota.add(ctx, 1);
      await ctx.publish("charged.stored", input);
      await ctx.enqueue(print, input);
      const Item = { ...table.key(ctx, "one"), ...input };
      const ConditionExpression = "attribute_not_exists(pk)";
      return ctx.commit([{ Put: { TableName: table.name, Item, ConditionExpression } }], input);
    },
  });
  r.on("charged.stored", {
    name: "index",
    handler: async (ctx) => {
      const Item = { ...table.key(ctx, "indexed"), n: 1 };
      await ctx.commit([{ Put: { TableName: table.name, Item } }], undefined);
    },
  });
});
const timed = defineFeature("timed", (r) => {
  r.schedule("hour.strike", { cron: "0 * * * *", handler: async () => undefined });
});

let stack: EmbeddedStack;
let meter: Meter;
beforeAll(async () => {
  stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  meter = await openMeter(stack.endpoint);
});
afterAll(async () => {
  await meter?.close();
  await stack?.close();
});

async function startCharged(cost: boolean, feature = charged): Promise<TestApp> {
  vi.stubEnv("KEELSON_TEST_ENDPOINT", meter.endpoint);
  try {
    return await startTestApp(buildServer({ features: [feature], log: { cost } }));
  } finally {
    vi.unstubAllEnvs();
  }
}

/** Everything that one tenant does, with a refused and a repeated write. */
async function workOf(app: TestApp, tenantId: string): Promise<void> {
  const as = { id: "ann", tenantId };
  const create = (key: string) =>
    app.fetch("/items", {
      body: { text: textOf(2_000) },
      as,
      headers: { "idempotency-key": key },
    });
  const answers = [
    await app.fetch("/items", { as }),
    await create("first"),
    await create("first"),
    await create("refused"),
    await app.fetch("/items", { as }),
  ];
  for (const answer of answers) await answer.text();
  expect(answers.map(({ ok }) => ok)).toEqual([true, true, true, false, true]);
  await app.settled();
}

type Line = Readonly<Record<string, unknown>>;
const completed = (app: TestApp) => app.logs.filter(({ msg }) => /\.completed$/.test(String(msg)));

function sumOf(lines: readonly Line[]) {
  const sum = (name: string) => lines.reduce((total, line) => total + Number(line[name]), 0);
  return {
    readUnits: sum("readUnits"),
    writeUnits: sum("writeUnits"),
    messageBytes: sum("messageBytes"),
  };
}

const unitsOf = ({ readUnits, writeUnits, messageBytes }: Bill) => ({
  readUnits,
  writeUnits,
  messageBytes,
});

test("a tenant's lines add up to the charges of its work, and include nothing of another tenant's", async () => {
  const app = await startCharged(true);
  try {
    await app.settled();
    const bills: Record<string, ReturnType<typeof unitsOf>> = {};
    meter.taken();
    for (const tenantId of ["acme", "globex"]) {
      await workOf(app, tenantId);
      await waitFor(() =>
        expect(completed(app).filter((line) => line["tenantId"] === tenantId)).toHaveLength(7),
      );
      bills[tenantId] = unitsOf(meter.taken().bill);
    }

    for (const [tenantId, bill] of Object.entries(bills)) {
      const lines = completed(app).filter((line) => line["tenantId"] === tenantId);
      expect(sumOf(lines)).toEqual(bill);
      expect(bill.writeUnits).toBeGreaterThan(20);
      expect(bill.messageBytes).toBeGreaterThan(2 * 2_000);
    }
    expect(capacities).toEqual([undefined, 0.5]);
  } finally {
    await app.close();
  }
});

test("the line of a schedule has its consumption, and a run without calls consumes nothing", async () => {
  const app = await startCharged(true, timed);
  try {
    await app.settled();
    app.clock.advance(3_600_000);
    await app.settled();
    await (await app.fetch("/health/live")).text();
    await (await app.fetch("/nowhere")).text();

    await waitFor(() => expect(completed(app)).toHaveLength(2));
    const [schedule, request] = completed(app);
    expect(schedule).toMatchObject({ msg: "schedule.completed", readUnits: 0, writeUnits: 6 });
    expect(request).toMatchObject({ readUnits: 0, writeUnits: 0, messageBytes: 0 });
  } finally {
    await app.close();
  }
});

test("without log.cost, no line has a consumption", async () => {
  const app = await startCharged(false);
  try {
    await workOf(app, "acme");

    expect(completed(app).length).toBeGreaterThan(5);
    for (const line of completed(app)) expect(line).not.toHaveProperty("writeUnits");
  } finally {
    await app.close();
  }
});
