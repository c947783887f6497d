import { afterAll, beforeAll, expect, test } from "vitest";
import { type DynamoDb, openDynamoDb } from "./dynamodb.ts";

let db: DynamoDb;
beforeAll(async () => {
  db = await openDynamoDb();
  for (const TableName of ["one", "two"])
    await db.call("CreateTable", {
      TableName,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [{ AttributeName: "pk", AttributeType: "S" }],
      KeySchema: [{ AttributeName: "pk", KeyType: "HASH" }],
    });
});
afterAll(() => db.close());

const key = (id: string) => ({ pk: { S: id } });
const put = (TableName: string, id: string, text = "") => ({
  Put: { TableName, Item: { ...key(id), text: { S: text } } },
});
const asked = { ReturnConsumedCapacity: "TOTAL" };

test("a transaction consumes twice the units of its items, by table, and a repeated one none", async () => {
  const given = { ...asked, ClientRequestToken: "same" };
  const TransactItems = () => [
    put("one", "a"),
    put("one", "b", "x".repeat(3_000)),
    { Delete: { TableName: "two", Key: key("none") } },
  ];
  expect(await db.call("TransactWriteItems", { ...given, TransactItems: TransactItems() })).toEqual(
    {
      ConsumedCapacity: [
        { TableName: "one", CapacityUnits: 8 },
        { TableName: "two", CapacityUnits: 2 },
      ],
    },
  );
  expect(await db.call("TransactWriteItems", { ...given, TransactItems: TransactItems() })).toEqual(
    {},
  );
});

test("a transactional read consumes twice the units of consistent reads", async () => {
  await db.call("TransactWriteItems", { TransactItems: [put("one", "c", "x".repeat(5_000))] });
  const TransactItems = () =>
    ["c", "none"].map((id) => ({ Get: { TableName: "one", Key: key(id) } }));

  const { Responses, ConsumedCapacity } = (await db.call("TransactGetItems", {
    ...asked,
    TransactItems: TransactItems(),
  })) as { Responses: readonly object[]; ConsumedCapacity: unknown };
  expect(Responses).toEqual([{ Item: expect.objectContaining(key("c")) }, {}]);
  expect(ConsumedCapacity).toEqual([{ TableName: "one", CapacityUnits: 6 }]);
  expect(await db.call("TransactGetItems", { TransactItems: TransactItems() })).toEqual({
    Responses,
  });
});

test.each([
  [{}, 0.5],
  [{ ConsistentRead: true }, 1],
])("a query with %j that finds nothing consumes %d units", async (more, CapacityUnits) => {
  const query = {
    TableName: "one",
    KeyConditionExpression: "pk = :pk",
    ExpressionAttributeValues: { ":pk": { S: "none" } },
    ...more,
  };

  expect(await db.call("Query", { ...query, ...asked })).toMatchObject({
    ConsumedCapacity: { TableName: "one", CapacityUnits },
  });
  expect(await db.call("Query", query)).not.toHaveProperty("ConsumedCapacity");
});
