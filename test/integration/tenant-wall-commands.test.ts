import {
  BatchGetCommand,
  BatchWriteCommand,
  DeleteCommand,
  GetCommand,
  PutCommand,
  QueryCommand,
  ScanCommand,
  TransactGetCommand,
  TransactWriteCommand,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { buildServer, defineFeature } from "../../src/index.ts";
import { startTestApp } from "../../src/tools/testing/index.ts";

const box = defineFeature("box", (r) => {
  const indexes = { byOwner: { partitionKey: "owner", sortKey: "sk" } };
  r.table("files", { partitionKey: "pk", sortKey: "sk", tenant: true, indexes });
});

const tableName = "keelson-files";
const tenants = ["acme", "globex", "acme2", "acm", "", "acme=2f"];
const prefix = fc.constantFrom(...tenants.map((tenant) => `${tenant}/`), "acme", "globex");
/** A key of somebody's, where there mostly is a row. */
const partition = prefix.map((begin) => `${begin}files`);
const sort = fc.constantFrom("a", "b", "g");
const key = fc.record({ pk: partition, sk: sort });
const owner = prefix.map((begin) => `${begin}gil`);
const item = fc.record(
  { pk: partition, sk: sort, owner, name: fc.constant("planted") },
  { requiredKeys: ["pk", "sk"] },
);
const space = fc.constantFrom(" ", "  ", "\n");
const ExpressionAttributeNames = { "#o": "owner", "#n": "name", "#pk": "pk" };
const action = fc.constantFrom(
  ...[
    "SET owner = :o",
    "SET #o = :o",
    "set #n = :o , #o = :o",
    "SET #n = owner, #o = #n",
    "REMOVE #o",
    "SET #o = if_not_exists(#x, :o)",
  ],
  ...[
    "SET #n = :o",
    "SET #n = :o REMOVE #o",
    "SET #n = :o SET #o = :o",
    "SET #o.a = :o",
    "ADD #o :o",
    "SET #o=:o",
  ],
);
const updates = fc
  .record({
    Key: key,
    UpdateExpression: action,
    ExpressionAttributeValues: fc.record({ ":o": owner }),
  })
  .map((update) => {
    const used = Object.entries({ ...ExpressionAttributeNames, "#x": "x" }).filter(([name]) =>
      update.UpdateExpression.includes(name),
    );
    const names = used.length === 0 ? {} : { ExpressionAttributeNames: Object.fromEntries(used) };
    const values = update.UpdateExpression.includes(":o")
      ? {}
      : { ExpressionAttributeValues: undefined };
    return { TableName: tableName, ...update, ...names, ...values };
  });
const condition = fc
  .tuple(
    fc.constantFrom(
      "pk = :v",
      ":v = pk",
      "(pk = :v)",
      "pk > :v",
      "pk = :v AND sk >= :s",
      "pk = :v OR pk = :s",
      "begins_with(pk, :v)",
      "owner = :v",
    ),
    space,
  )
  .map(([text, gap]) => text.replaceAll(" ", gap));
const queries = fc
  .record(
    {
      KeyConditionExpression: condition,
      ExpressionAttributeValues: fc.record({ ":v": fc.oneof(partition, owner) }),
      IndexName: fc.constant("byOwner"),
      ExclusiveStartKey: fc.oneof(key, fc.record({ pk: partition, sk: sort, owner })),
    },
    { requiredKeys: ["KeyConditionExpression", "ExpressionAttributeValues"] },
  )
  .map(({ ExpressionAttributeValues: values, ...query }) => ({
    ...query,
    TableName: tableName,
    ExpressionAttributeValues: query.KeyConditionExpression.includes(":s")
      ? { ...values, ":s": "a" }
      : values,
  }));
const put = item.map((Item) => ({ TableName: tableName, Item }));
const byKey = key.map((Key) => ({ TableName: tableName, Key }));
const some = <Value>(values: fc.Arbitrary<Value>) =>
  fc.array(values, { minLength: 1, maxLength: 2 });

const commands = fc.oneof(
  byKey.map((input) => new GetCommand(input)),
  put.map((input) => new PutCommand(input)),
  byKey.map((input) => new DeleteCommand(input)),
  updates.map((input) => new UpdateCommand(input)),
  queries.map((input) => new QueryCommand(input)),
  some(key).map((Keys) => new BatchGetCommand({ RequestItems: { [tableName]: { Keys } } })),
  some(
    fc.oneof(
      item.map((Item) => ({ PutRequest: { Item } })),
      key.map((Key) => ({ DeleteRequest: { Key } })),
    ),
  ).map((requests) => new BatchWriteCommand({ RequestItems: { [tableName]: requests } })),
  some(byKey).map(
    (gets) => new TransactGetCommand({ TransactItems: gets.map((Get) => ({ Get })) }),
  ),
  some(
    fc.oneof(
      put.map((Put) => ({ Put })),
      updates.map((Update) => ({ Update })),
      byKey.map((Delete) => ({ Delete })),
    ),
  ).map((TransactItems) => new TransactWriteCommand({ TransactItems })),
);

test("every accepted command reads and changes only the caller's rows, in the table and in its index", async () => {
  const app = await startTestApp(buildServer({ features: [box] }));
  onTestFinished(() => app.close());
  const all = (
    await app.ctx({ id: "root", tenantId: "ops", roles: ["systemAdmin"] })
  ).acrossTenants("test");
  const seeded = tenants.flatMap((tenant) =>
    ["a", "g"].map((sk) => ({
      pk: `${tenant}/files`,
      sk,
      owner: `${tenant}/gil`,
      name: `row of ${tenant}`,
    })),
  );
  for (const Item of seeded) await all.send(new PutCommand({ TableName: tableName, Item }));
  const foreign = async () => {
    const { Items = [] } = await all.send(new ScanCommand({ TableName: tableName }));
    const visible = await all.send(new ScanCommand({ TableName: tableName, IndexName: "byOwner" }));
    const others = (rows: readonly Record<string, unknown>[], attribute: string) =>
      rows
        .filter((row) => !String(row[attribute]).startsWith("acme/"))
        .map((row) => JSON.stringify(row))
        .sort();
    return [others(Items, "pk"), others(visible.Items ?? [], "owner")];
  };
  const before = await foreign();
  const { db } = await app.ctx({ id: "ann", tenantId: "acme" });
  let passed = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(commands, { minLength: 5, maxLength: 20 }), async (batch) => {
      for (const command of batch) {
        const answer = await db.send(command as GetCommand).then(
          (given) => {
            passed += 1;
            return given;
          },
          () => undefined,
        );
        const { $metadata: _, ...read } = answer ?? { $metadata: {} };
        expect(JSON.stringify(read)).not.toMatch(/"pk":"(?!acme\/)/);
        expect(JSON.stringify(read)).not.toMatch(/"owner":"(?!acme\/)/);
      }
      expect(await foreign()).toEqual(before);
    }),
    { numRuns: 15 },
  );
  expect(passed).toBeGreaterThan(0);
});
