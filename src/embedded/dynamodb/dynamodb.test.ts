import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { waitFor } from "../../../test/support/wait-for.ts";
import { type DynamoDb, openDynamoDb } from "./dynamodb.ts";

const startMs = Date.UTC(2026, 0, 1);
let nowMs: number;
let db: DynamoDb;
const faults: unknown[] = [];

beforeEach(async () => {
  nowMs = startMs;
  faults.length = 0;
  db = await openDynamoDb({
    clock: { now: () => nowMs },
    reportFault: (fault) => faults.push(fault),
  });
  await createTable("tab");
});
afterEach(async () => {
  await db.close();
  expect(faults).toEqual([]);
});

const createTable = (TableName: string, AttributeName = "pk") =>
  db.call("CreateTable", {
    TableName,
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: [{ AttributeName, AttributeType: "S" }],
    KeySchema: [{ AttributeName, KeyType: "HASH" }],
  });
const key = (pk: string) => ({ pk: { S: pk } });
const put = (pk: string, attributes: object = {}, table = "tab") =>
  db.call("PutItem", { TableName: table, Item: { ...key(pk), ...attributes } });
const get = async (pk: string, table = "tab") => {
  const { Item } = (await db.call("GetItem", { TableName: table, Key: key(pk) })) as {
    Item?: Record<string, unknown>;
  }; // what GetItem answers
  return Item;
};
const add = (pk: string, n: number) => ({
  Update: {
    TableName: "tab",
    Key: key(pk),
    UpdateExpression: "ADD n :n",
    ExpressionAttributeValues: { ":n": { N: String(n) } },
  },
});
const transact = (TransactItems: unknown, ClientRequestToken?: unknown) =>
  db.call("TransactWriteItems", { TransactItems, ClientRequestToken });

test("a token holds for 10 minutes, whatever the order of the transaction's members", async () => {
  await transact([add("a", 1)], "token");
  nowMs += 10 * 60_000 - 1;
  const { Update } = add("a", 1);
  await transact([{ Update: Object.fromEntries(Object.entries(Update).reverse()) }], "token");
  expect(await get("a")).toMatchObject({ n: { N: "1" } });
  nowMs += 1;
  await transact([add("a", 1)], "token");
  expect(await get("a")).toMatchObject({ n: { N: "2" } });
});

test("drops old tokens page by page, and keeps younger ones", async () => {
  await Promise.all(Array.from({ length: 1005 }, (_, n) => transact([add("a", 1)], `old-${n}`)));
  nowMs += 11 * 60_000;
  for (let sweep = 0; sweep < 4; sweep += 1) {
    await transact([add("b", 1)], `young-${sweep}`);
    nowMs += 10_000;
  }
  await transact([add("b", 1)], "young-0");
  expect(await get("b")).toMatchObject({ n: { N: "4" } });
});

test.each([
  ["", "length greater than or equal to 1"],
  ["x".repeat(37), "length less than or equal to 36"],
])("refuses the token %j", async (token, message) => {
  await expect(transact([add("a", 1)], token)).rejects.toThrow(message);
});

test.each([
  [undefined, "Value null at 'transactItems'"],
  ["text", "Value null at 'transactItems'"],
  [[null], "Value null at 'transactItems.1.member'"],
  [[{}], "TransactItems can only contain one of"],
  [[{ Put: [] }], "Value null at 'transactItems.1.member.put'"],
  [
    [{ Put: { TableName: "tab" } }],
    "Value null at 'transactItems.1.member.put.item' failed to satisfy constraint",
  ],
  [
    [add("a", 1), { Update: { TableName: "tab", Key: key("b") } }],
    "Value null at 'transactItems.2.member.update.updateExpression'",
  ],
  [
    [{ Put: { TableName: "tab", Item: key("a"), ReturnValuesOnConditionCheckFailure: "ALL_NEW" } }],
    "Value 'ALL_NEW' at 'transactItems.1.member.put.returnValuesOnConditionCheckFailure'",
  ],
])("refuses the transaction %j", async (items, message) => {
  await expect(transact(items)).rejects.toThrow(message);
});

test.each([
  [[{ Get: null }], "Value null at 'transactItems.1.member.get'"],
  [[{ Get: { Key: key("a") } }], "Value null at 'transactItems.1.member.get.tableName'"],
])("refuses the transactional read %j", async (TransactItems, message) => {
  await expect(db.call("TransactGetItems", { TransactItems })).rejects.toThrow(message);
});

test("a transactional read with a key of the wrong type gives a reason for each item", async () => {
  const gets = [key("a"), { other: { S: "a" } }].map((Key) => ({ Get: { TableName: "tab", Key } }));
  await expect(db.call("TransactGetItems", { TransactItems: gets })).rejects.toMatchObject({
    type: "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
    members: { CancellationReasons: [{ Code: "None" }, { Code: "ValidationError" }] },
  });
});

test("a null in place of a structure is a serialization error", async () => {
  await expect(db.call("PutItem", { TableName: "tab", Item: { pk: null } })).rejects.toMatchObject({
    type: "com.amazon.coral.service#SerializationException",
  });
});

test("text in place of a structure is a serialization error in dynalite's words", async () => {
  await expect(db.call("PutItem", { TableName: "tab", Item: "text" })).rejects.toMatchObject({
    type: "com.amazon.coral.service#SerializationException",
    message: "Unexpected field type",
  });
});

test("an abandoned transaction fails without effect, and the next one succeeds", async () => {
  const fault = new Error("thrown in a callback");
  const running = transact([add("a", 1), add("b", 1)], "token").then(
    () => "done",
    (error: unknown) => error,
  );
  // The operations run one after the other: abandoning at every turn catches the one that runs.
  while (
    (await Promise.race([running, new Promise((resolve) => setImmediate(resolve, "runs"))])) ===
    "runs"
  )
    db.abandon(fault);
  expect(await running).toBe(fault);
  expect([await get("a"), await get("b")]).toEqual([undefined, undefined]);
  await transact([add("a", 1), add("b", 1)], "token");
  expect(await get("b")).toMatchObject({ n: { N: "1" } });
});

test("refuses an operation that does not exist", async () => {
  await expect(db.call("ExecuteStatement", {})).rejects.toMatchObject({
    type: expect.stringContaining("UnknownOperationException"),
  });
});

test("passes on the error of a write to an unknown table, and the next write succeeds", async () => {
  await expect(db.call("PutItem", { TableName: "none", Item: key("a") })).rejects.toThrow(
    "Requested resource not found",
  );
  await expect(transact([{ Put: { TableName: "none", Item: key("a") } }])).rejects.toThrow(
    "Requested resource not found",
  );
  await put("a");
  expect(await get("a")).toEqual(key("a"));
});

test("a write to a closed store fails", async () => {
  const broken = await openDynamoDb();
  await broken.close();
  await expect(broken.call("PutItem", { TableName: "tab", Item: key("a") })).rejects.toThrow(
    "closed",
  );
});

test("tags a table by its ARN", async () => {
  const { Table } = (await db.call("DescribeTable", { TableName: "tab" })) as {
    Table: { TableArn: string };
  }; // what DescribeTable answers
  await db.call("TagResource", {
    ResourceArn: Table.TableArn,
    Tags: [{ Key: "team", Value: "blue" }],
  });
  expect(await db.call("ListTagsOfResource", { ResourceArn: Table.TableArn })).toMatchObject({
    Tags: [{ Key: "team", Value: "blue" }],
  });
});

test.each([
  [{ TableName: "none" }, "Requested resource not found"],
  [{ TableName: "tab" }, "Value null at 'timeToLiveSpecification'"],
  [
    { TableName: "tab", TimeToLiveSpecification: { AttributeName: "e" } },
    "timeToLiveSpecification.enabled",
  ],
  [
    { TableName: "tab", TimeToLiveSpecification: { Enabled: true } },
    "Value null at 'timeToLiveSpecification.attributeName'",
  ],
  [
    { TableName: "tab", TimeToLiveSpecification: { Enabled: true, AttributeName: "" } },
    "length from 1 to 255",
  ],
  [
    {
      TableName: "tab",
      TimeToLiveSpecification: { Enabled: true, AttributeName: "e".repeat(256) },
    },
    "length from 1 to 255",
  ],
  [
    { TableName: "tab", TimeToLiveSpecification: { Enabled: false, AttributeName: "e" } },
    "TimeToLive is already disabled",
  ],
])("refuses the time to live %j", async (input, message) => {
  await expect(db.call("UpdateTimeToLive", input)).rejects.toThrow(message);
});

const expire = (Enabled: boolean, TableName = "tab") =>
  db.call("UpdateTimeToLive", {
    TableName,
    TimeToLiveSpecification: { Enabled, AttributeName: "e" },
  });
const seconds = (offset: number) => ({ e: { N: String(startMs / 1000 + offset) } });

test("later writes remove expired items, and all others stay", async () => {
  await expire(true);
  await createTable("unexpiring");
  await put("expired", seconds(-1), "unexpiring");
  await put("text", { e: { S: "1" } });
  await put("later", seconds(1000));
  await put("ancient", { e: { N: "1" } });
  await Promise.all(Array.from({ length: 150 }, (_, n) => put(`soon-${n}`, seconds(5))));
  nowMs += 10_000;
  for (let sweep = 0; sweep < 3; sweep += 1) {
    await put("other");
    nowMs += 10_000;
  }
  await waitFor(async () => {
    const { Count } = (await db.call("Scan", { TableName: "tab", Select: "COUNT" })) as {
      Count: number;
    }; // what Scan answers
    expect(Count).toBe(4);
  });
  for (const pk of ["text", "later", "ancient", "other"]) expect(await get(pk)).toBeDefined();
  expect(await get("expired", "unexpiring")).toBeDefined();
});

test("expires items of more tables than one sweep visits", async () => {
  const names = Array.from({ length: 25 }, (_, n) => `table-${n}`);
  for (const name of names) {
    await createTable(name);
    await put("expired", seconds(-1), name);
    await expire(true, name);
  }

  await waitFor(async () => {
    nowMs += 10_000;
    await put("other");
    for (const name of names) expect(await get("expired", name)).toBeUndefined();
  });
});

test("expires items of a table that is created again with another key, and of the next table", async () => {
  await createTable("tab-next");
  for (const name of ["tab", "tab-next"]) await expire(true, name);
  await Promise.all(Array.from({ length: 350 }, (_, n) => put(`later-${n}`, seconds(1e6))));
  await put("expired", seconds(-1), "tab-next");
  const isSwept = () =>
    waitFor(async () => expect(await get("expired", "tab-next")).toBeUndefined());
  nowMs += 10_000;
  await put("other", {}, "tab-next");
  await isSwept(); // and a page of the other table, not its last

  await db.call("DeleteTable", { TableName: "tab" });
  await createTable("tab", "id");
  await expire(true);
  const id = { id: { S: "expired" } };
  await db.call("PutItem", { TableName: "tab", Item: { ...id, ...seconds(-1) } });
  nowMs += 10_000;
  await put("expired", seconds(-1), "tab-next");
  await isSwept();

  expect(await db.call("GetItem", { TableName: "tab", Key: id })).toEqual({});
});

test("disabled time to live expires nothing", async () => {
  await expire(true);
  await expire(false);
  expect(await db.call("DescribeTimeToLive", { TableName: "tab" })).toEqual({
    TimeToLiveDescription: { TimeToLiveStatus: "DISABLED" },
  });
  await put("a", seconds(-1));
  nowMs += 10_000;
  await put("b");
  await put("c");
  expect(await get("a")).toBeDefined();
});

test("a table that is deleted and created again has no items and no time to live", async () => {
  await expire(true);
  await put("a");
  await db.call("DeleteTable", { TableName: "tab" });
  await expect(get("a")).rejects.toThrow("not found");
  await createTable("tab");
  expect(await get("a")).toBeUndefined();
  expect(await db.call("DescribeTimeToLive", { TableName: "tab" })).toMatchObject({
    TimeToLiveDescription: { TimeToLiveStatus: "DISABLED" },
  });
});

test("concurrent transfers, single writes and reads never create or lose money", async () => {
  const names = ["a", "b", "c", "d"];
  const account = fc.constantFrom(...names);
  const transfer = fc
    .record({
      from: account,
      to: account,
      amount: fc.integer({ min: 1, max: 60 }),
      read: fc.boolean(),
    })
    .filter(({ from, to }) => from !== to);
  await fc.assert(
    fc.asyncProperty(fc.array(transfer, { minLength: 1, maxLength: 15 }), async (transfers) => {
      for (const name of names) await put(name, { n: { N: "100" } });
      const balances = async () => {
        const gets = names.map((name) => ({ Get: { TableName: "tab", Key: key(name) } }));
        const read = (await db.call("TransactGetItems", { TransactItems: gets })) as {
          Responses: { Item: { n: { N: string } } }[];
        }; // all four are there
        return read.Responses.map(({ Item }) => Number(Item.n.N));
      };
      const moved = await Promise.all(
        transfers.map(async ({ from, to, amount, read }) => {
          if (read) expect((await balances()).reduce((sum, n) => sum + n, 0)).toBe(400);
          const enough = {
            ConditionExpression: "n >= :amount",
            ExpressionAttributeValues: {
              ":amount": { N: String(amount) },
              ":minus": { N: String(-amount) },
            },
          };
          const take = {
            Update: {
              TableName: "tab",
              Key: key(from),
              UpdateExpression: "ADD n :minus",
              ...enough,
            },
          };
          const done = await transact([take, add(to, amount)]).then(
            () => true,
            () => false,
          );
          return done ? { from, to, amount } : undefined;
        }),
      );
      const expected = new Map(names.map((name) => [name, 100]));
      for (const { from, to, amount } of moved.filter((transfer) => transfer !== undefined)) {
        expected.set(from, (expected.get(from) ?? 0) - amount);
        expected.set(to, (expected.get(to) ?? 0) + amount);
      }
      expect(await balances()).toEqual([...expected.values()]);
      expect(Math.min(...expected.values())).toBeGreaterThanOrEqual(0);
    }),
    { numRuns: 40 },
  );
});
