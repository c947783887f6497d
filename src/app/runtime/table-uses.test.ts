import {
  BatchGetCommand,
  BatchWriteCommand,
  ExecuteStatementCommand,
  GetCommand,
  PutCommand,
  QueryCommand,
  TransactGetCommand,
  TransactWriteCommand,
} from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { access } from "../../base/identity/access.ts";
import type { CommitItem } from "../../base/types/database.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import type { PipelineContext, QueryContext } from "../handlers/pipeline-context.ts";
import { buildServer } from "../server/server.ts";

/** What every handler of the moment does. */
let work: (ctx: PipelineContext) => unknown = () => undefined;
let hooked: () => readonly CommitItem[] = () => [];
// Safe cast: the work of a query only reads.
const look = (ctx: QueryContext) => work(ctx as PipelineContext);
const everyone = { access: access.everyone };
const keyed = { partitionKey: "pk", tenant: false } as const;

const orders = defineFeature("orders", (r) => {
  const table = r.table("orders", keyed);
  const read = (ctx: Pick<QueryContext, "db">) =>
    ctx.db.send(new GetCommand({ TableName: table.name, Key: { pk: "1" } }));
  r.query("order.show", { handler: read });
  return { table, read };
});
const files = defineFeature("files", (r) => ({
  table: r.table("files", { ...keyed, tenant: true }),
}));
const reports = defineFeature("two-words", (r) => ({ table: r.table("reports", keyed) }));
const billing = defineFeature(
  "billing",
  (r) => {
    const table = r.table("bills", keyed);
    r.query("bill.show", { route: "GET /bill", ...everyone, handler: look });
    r.query("bill.ask", { handler: (ctx) => ctx.query("orders.order.show" as never, {} as never) });
    r.write("bill.make", { route: "POST /bill", ...everyone, handler: (ctx) => work(ctx) });
    r.job("bill.send", { input: z.object({}), handler: (ctx) => work(ctx) });
    r.event("bill.made", z.object({}));
    r.on("bill.made" as never, { name: "note", handler: (ctx) => work(ctx) });
    r.channel("post", { input: z.object({}), send: (ctx) => work(ctx) as Promise<void> });
    return { table };
  },
  { uses: { "two-words": "read" } },
);
const using = defineFeature(
  "using",
  (r) => {
    r.query("thing.show", { handler: look });
    r.write("thing.make", { handler: (ctx) => work(ctx) });
  },
  { uses: { orders: "write", "two-words": "read", files: "read" } },
);
const hooking = defineFeature("hooking", (r) => {
  const table = r.table("hooks", keyed);
  r.hook("using.thing.make" as never, { commit: () => hooked() } as never);
  return { table };
});
const features = [orders, files, reports, billing, using, hooking];

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features, environment: "test" }));
});
afterAll(() => app.close());
beforeEach(() => {
  work = () => undefined;
  hooked = () => [];
});

const put = (TableName: string): CommitItem => ({ Put: { TableName, Item: { pk: "1" } } });
const check = (TableName: string): CommitItem => ({
  ConditionCheck: { TableName, Key: { pk: "1" }, ConditionExpression: "attribute_not_exists(pk)" },
});
const line = (uses: string) => `which its generated role does not allow; declare it: ${uses}`;
const readLine = line(
  'defineFeature("billing", …, { uses: { "two-words": "read", orders: "read" } })',
);
const writeLine = line(
  'defineFeature("billing", …, { uses: { "two-words": "read", orders: "write" } })',
);

describe("fails a handler that reaches another feature's table without declaring it, and shows the line to write", () => {
  const Key = { pk: "1" };
  test.each<[string, (ctx: PipelineContext) => unknown]>([
    ["a read", (ctx) => orders.read(ctx)],
    [
      "a query",
      (ctx) =>
        ctx.db.send(
          new QueryCommand({ TableName: orders.table.name, KeyConditionExpression: "pk = a" }),
        ),
    ],
    [
      "a batch",
      (ctx) =>
        ctx.db.send(
          new BatchGetCommand({ RequestItems: { [orders.table.name]: { Keys: [Key] } } }),
        ),
    ],
    [
      "a batch that begins with its own",
      (ctx) =>
        ctx.db.send(
          new BatchGetCommand({
            RequestItems: {
              [billing.table.name]: { Keys: [Key] },
              [orders.table.name]: { Keys: [Key] },
            },
          }),
        ),
    ],
    [
      "a transaction",
      (ctx) =>
        ctx.db.send(
          new TransactGetCommand({
            TransactItems: [{ Get: { TableName: orders.table.name, Key } }],
          }),
        ),
    ],
    [
      "by its ARN",
      (ctx) => {
        const TableName = `arn:aws:dynamodb:us-east-1:000000000000:table/${orders.table.name}`;
        return ctx.db.send(new GetCommand({ TableName, Key }));
      },
    ],
  ])("when it reads: %s", async (_, reach) => {
    work = reach;
    for (const name of ["billing.bill.show", "billing.bill.make"]) {
      await expect(app.call(name)).rejects.toThrow(
        `${name} reads the table orders of the feature orders, ${readLine}`,
      );
    }
  });

  test.each<[string, (ctx: PipelineContext) => unknown]>([
    [
      "a put",
      (ctx) => ctx.db.send(new PutCommand({ TableName: orders.table.name, Item: { pk: "1" } })),
    ],
    [
      "a batch",
      (ctx) =>
        ctx.db.send(
          new BatchWriteCommand({
            RequestItems: { [orders.table.name]: [{ PutRequest: { Item: { pk: "1" } } }] },
          }),
        ),
    ],
    [
      "a transaction",
      (ctx) => ctx.db.send(new TransactWriteCommand({ TransactItems: [put(orders.table.name)] })),
    ],
    ["a commit", (ctx) => ctx.commit([put(billing.table.name), put(orders.table.name)], undefined)],
  ])("when it writes: %s", async (_, reach) => {
    work = reach;
    await expect(app.call("billing.bill.make")).rejects.toThrow(
      `billing.bill.make writes to the table orders of the feature orders, ${writeLine}`,
    );
    expect(await app.call("orders.order.show")).not.toHaveProperty("Item");
  });

  test("when a query it calls reads the table, which has the caller's role", async () => {
    await expect(app.call("billing.bill.ask")).rejects.toThrow(
      `billing.bill.ask reads the table orders`,
    );
  });

  test("when it commits a condition", async () => {
    work = (ctx) => ctx.commit([check(orders.table.name)], undefined);
    await expect(app.call("billing.bill.make")).rejects.toThrow(
      `billing.bill.make reads the table orders of the feature`,
    );
  });

  test("when it declares to read only, and writes", async () => {
    work = (ctx) => ctx.commit([put(reports.table.name)], undefined);
    await expect(app.call("billing.bill.make")).rejects.toThrow(
      line('defineFeature("billing", …, { uses: { "two-words": "write" } })'),
    );
  });

  test("when it crosses tenants or reaches a table with tenants", async () => {
    work = async (ctx) =>
      ctx.db.send(new GetCommand({ TableName: files.table.name, Key: { pk: "acme/1" } }));
    const as = { id: "root", tenantId: "acme", roles: ["systemAdmin"] };
    await expect(app.call("billing.bill.show", {}, { as })).rejects.toThrow('files: "read"');
    work = (ctx) => orders.read({ db: ctx.acrossTenants("a report") });
    await expect(app.call("billing.bill.show", {}, { as })).rejects.toThrow(readLine);
  });

  test("with a 500 and its line in the log, also for a job, a consumer and a delivery", async () => {
    work = (ctx) => orders.read(ctx);
    expect((await app.fetch("/bill")).status).toBe(500);
    const failures = () =>
      app.logs.filter(({ message }) => String(message).includes(readLine)).map(({ msg }) => msg);
    expect(failures()).toEqual(["request.failed"]);
    const ctx = await app.ctx({ id: "ann", tenantId: "acme" });
    await ctx.enqueue("billing.bill.send" as never, {} as never);
    await ctx.publish("bill.made" as never, {} as never);
    await ctx.delivery.send("post" as never, {} as never);
    await app.settled().catch(() => undefined);
    expect(failures()).toEqual(expect.arrayContaining(["job.failed", "event.failed"]));
    expect(app.logs).toContainEqual(
      expect.objectContaining({
        handler: "keelson.delivery.send",
        message: expect.stringContaining("reads the table orders"),
      }),
    );
  });

  test("before the command is sent, so that app.calls does not count it", async () => {
    work = (ctx) => orders.read(ctx);
    const before = { ...app.calls };
    await app.call("billing.bill.show").catch(() => undefined);
    expect(app.calls).toEqual(before);
    await app.call("orders.order.show");
    expect(app.calls["GetItem"]).toBe((before["GetItem"] ?? 0) + 1);
  });

  test("when its hook adds items to the commit", async () => {
    hooked = () => [put(reports.table.name)];
    await expect(app.call("using.thing.make")).rejects.toThrow(
      "using.thing.make writes to the table reports",
    );
  });

  test("and a query that writes, whatever its feature declares", async () => {
    work = (ctx) =>
      ctx.db.send(new PutCommand({ TableName: orders.table.name, Item: { pk: "1" } }));
    await expect(app.call("using.thing.show")).rejects.toThrow(
      "using.thing.show writes to the table orders of the feature orders, and a query only reads; move this to a write",
    );
  });
});

describe("allows access to tables", () => {
  test("that are declared, that a hook's own feature declares, or that no feature declares", async () => {
    work = async (ctx) => {
      await orders.read(ctx);
      await ctx.db.send(new PutCommand({ TableName: orders.table.name, Item: { pk: "2" } }));
      await ctx.commit([check(reports.table.name), put(orders.table.name)], undefined);
    };
    hooked = () => [put(hooking.table.name)];
    await app.call("using.thing.make");
    work = (ctx) => orders.read(ctx);
    expect(await app.call("using.thing.show")).toMatchObject({ Item: { pk: "1" } });
    work = (ctx) => ctx.db.send(new GetCommand({ TableName: "elsewhere", Key: { pk: "1" } }));
    await expect(app.call("billing.bill.show")).rejects.not.toThrow("generated role");
  });

  test("from scripts and tests, which have no generated role", async () => {
    const { db } = await app.ctx({ id: "ann", tenantId: "acme" });
    expect(
      await db.send(new GetCommand({ TableName: "keelson-orders", Key: { pk: "1" } })),
    ).toHaveProperty("$metadata");
  });
});

test("a server without tables of tenants checks the same, except operations that are not about rows", async () => {
  const plain = await startTestApp(
    buildServer({ features: [orders, reports, billing], environment: "development" }),
  );
  try {
    work = (ctx) => ctx.commit([put(orders.table.name)], undefined);
    await expect(plain.call("billing.bill.make")).rejects.toThrow(writeLine);
    work = (ctx) => ctx.commit([put(billing.table.name)], { id: 1 });
    expect(await plain.call("billing.bill.make")).toEqual({ id: 1 });
    const statement = () =>
      new ExecuteStatementCommand({ Statement: `SELECT * FROM "${orders.table.name}"` });
    work = (ctx) => ctx.db.send(statement());
    await expect(plain.call("billing.bill.show")).rejects.not.toThrow("generated role");
  } finally {
    await plain.close();
  }
});

test("in production nothing is checked, and the check is not loaded", async () => {
  const production = await startTestApp(buildServer({ features, environment: "production" }));
  try {
    work = (ctx) => orders.read(ctx);
    expect(await production.call("billing.bill.show")).toHaveProperty("$metadata");
  } finally {
    await production.close();
  }
});
