import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { indexPrefix, openDynalite } from "../service/dynalite.ts";
import type { ServiceError } from "../service/service.ts";
import { type DynamoDb, openDynamoDb } from "./dynamodb.ts";
import { changeIndexes, changeTable } from "./table-changes.ts";

const definition = (AttributeName: string, AttributeType = "S") => ({
  AttributeName,
  AttributeType,
});
const hash = (AttributeName: string) => ({ AttributeName, KeyType: "HASH" });
const range = (AttributeName: string) => ({ AttributeName, KeyType: "RANGE" });
const all = { ProjectionType: "ALL" };
const byOwner = { IndexName: "byOwner", KeySchema: [hash("owner")], Projection: all };

let db: DynamoDb;
beforeEach(async () => {
  db = await openDynamoDb();
  await db.call("CreateTable", tableOf("tab"));
});

const tableOf = (TableName: string, more: object = {}) => ({
  TableName,
  BillingMode: "PAY_PER_REQUEST",
  AttributeDefinitions: [definition("pk")],
  KeySchema: [hash("pk")],
  ...more,
});
const put = (pk: string, attributes: object = {}) =>
  db.call("PutItem", { TableName: "tab", Item: { pk: { S: pk }, ...attributes } });
const remove = (pk: string) => db.call("DeleteItem", { TableName: "tab", Key: { pk: { S: pk } } });
const update = (change: object, more: object = {}) =>
  db.call("UpdateTable", { TableName: "tab", GlobalSecondaryIndexUpdates: [change], ...more });
const create = (index: object, ...definitions: object[]) =>
  update({ Create: index }, { AttributeDefinitions: definitions });
/** The items of an index, by their partition keys. */
const inIndex = async (IndexName = "byOwner") => {
  const { Items } = (await db.call("Scan", { TableName: "tab", IndexName })) as {
    Items: { pk: { S: string } }[];
  }; // what a scan answers
  return Object.fromEntries(Items.map(({ pk, ...rest }) => [pk.S, rest]));
};
const table = async () => {
  const { Table } = (await db.call("DescribeTable", { TableName: "tab" })) as {
    Table: Record<string, unknown>;
  }; // what it answers
  return Table;
};

describe("an index added to a table", () => {
  test("has the existing items, and follows later writes", async () => {
    await put("a", { owner: { S: "ann" }, size: { N: "1" } });
    await put("none");
    await put("empty", { owner: { S: "" } });
    expect(await create(byOwner, definition("owner"))).toMatchObject({
      TableDescription: {
        GlobalSecondaryIndexes: [{ IndexName: "byOwner", IndexStatus: "ACTIVE" }],
      },
    });
    expect(await inIndex()).toEqual({ a: { owner: { S: "ann" }, size: { N: "1" } } });
    await put("b", { owner: { S: "bob" } });
    for (const gone of ["a", "empty"]) await remove(gone);
    expect(await inIndex()).toEqual({ b: { owner: { S: "bob" } } });
    expect(await table()).toMatchObject({
      AttributeDefinitions: [definition("pk"), definition("owner")],
      GlobalSecondaryIndexes: [
        { IndexArn: expect.stringMatching(/:table\/tab\/index\/byOwner$/), Projection: all },
      ],
    });
  });

  test("has only the attributes that it projects", async () => {
    await put("a", { owner: { S: "ann" }, size: { N: "1" }, name: { S: "x" } });
    await create(
      { ...byOwner, Projection: { ProjectionType: "INCLUDE", NonKeyAttributes: ["size"] } },
      definition("owner"),
    );
    await create({ ...byOwner, IndexName: "keys", Projection: { ProjectionType: "KEYS_ONLY" } });
    expect(await inIndex()).toEqual({ a: { owner: { S: "ann" }, size: { N: "1" } } });
    expect(await inIndex("keys")).toEqual({ a: { owner: { S: "ann" } } });
  });

  test("is refused when an item has its key with another type, and changes nothing", async () => {
    await put("a", { owner: { N: "1" } });
    const before = await table();
    await expect(create(byOwner, definition("owner"))).rejects.toThrow(
      "the key owner of index byOwner is of type S, and an item has it as N; rewrite or delete such items first",
    );
    expect(await table()).toEqual(before);
    await remove("a");
  });

  test("leaves a local index in place, and may start with the table's own keys", async () => {
    const sorted = {
      AttributeDefinitions: [definition("pk"), definition("sk"), definition("at")],
      KeySchema: [hash("pk"), range("sk")],
    };
    const local = { IndexName: "byTime", KeySchema: [hash("pk"), range("at")], Projection: all };
    await db.call("CreateTable", { ...tableOf("sorted", sorted), LocalSecondaryIndexes: [local] });
    const flipped = { IndexName: "flipped", KeySchema: [hash("sk"), range("pk")], Projection: all };
    const answer = await db.call("UpdateTable", {
      TableName: "sorted",
      GlobalSecondaryIndexUpdates: [{ Create: flipped }],
    });
    expect(answer).toMatchObject({
      TableDescription: {
        LocalSecondaryIndexes: [{ IndexName: "byTime" }],
        GlobalSecondaryIndexes: [{ IndexName: "flipped" }],
      },
    });
  });

  test("is still there when the store is reopened", async () => {
    const path = mkdtempSync(join(tmpdir(), "keelson-indexes-"));
    db = await openDynamoDb({ path });
    await db.call("CreateTable", tableOf("tab"));
    await put("a", { owner: { S: "ann" } });
    await create(byOwner, definition("owner"));
    await db.close();
    db = await openDynamoDb({ path });
    expect(await inIndex()).toEqual({ a: { owner: { S: "ann" } } });
    await db.close();
    rmSync(path, { recursive: true });
  });

  test("has no entries left by an interrupted deletion of an index of the same name", async () => {
    const dynalite = await openDynalite();
    await changeTable(dynalite, "CreateTable", dynalite.prepare("CreateTable", tableOf("tab")));
    const left = {
      type: "put",
      key: `${indexPrefix("Global", "tab", "byOwner")}k`,
      value: { pk: { S: "gone" } },
    } as const;
    await dynalite.store.db.batch([left]);
    await changeIndexes(dynalite, {
      TableName: "tab",
      AttributeDefinitions: [definition("owner")],
      GlobalSecondaryIndexUpdates: [{ Create: byOwner }],
    });
    const scan = dynalite.prepare("Scan", { TableName: "tab", IndexName: "byOwner" });
    expect(await dynalite.run("Scan", scan)).toMatchObject({ Count: 0 });
  });
});

test("deleting an index removes its entries and the definitions of its attributes", async () => {
  await create(byOwner, definition("owner"));
  await create(
    { ...byOwner, IndexName: "bySize", KeySchema: [hash("size"), range("owner")] },
    definition("size", "N"),
  );
  await put("a", { owner: { S: "ann" }, size: { N: "1" } });
  await update({ Delete: { IndexName: "bySize" } });
  expect(await table()).toMatchObject({
    AttributeDefinitions: [definition("pk"), definition("owner")],
    GlobalSecondaryIndexes: [{ IndexName: "byOwner" }],
  });
  await update({ Delete: { IndexName: "byOwner" } });
  expect(await table()).not.toHaveProperty("GlobalSecondaryIndexes");
  await expect(inIndex()).rejects.toThrow("The table does not have the specified index");
  await remove("a");
  await create(byOwner, definition("owner"));
  expect(await inIndex()).toEqual({});
});

describe("DynamoDB refuses", () => {
  const refused = async (call: Promise<unknown>) => {
    const { type, message } = await call.then(
      () => expect.unreachable(),
      (error: ServiceError) => error,
    );
    return `${type.split("#")[1]}: ${message}`;
  };

  test("an index whose name is taken, and the deletion of an unknown index", async () => {
    await create(byOwner, definition("owner"));
    expect(await refused(create(byOwner))).toBe(
      "ValidationException: Attempting to create an index which already exists",
    );
    expect(await refused(update({ Delete: { IndexName: "other" } }))).toBe(
      "ResourceNotFoundException: Requested resource not found",
    );
    const unknown = { TableName: "none", GlobalSecondaryIndexUpdates: [{ Create: byOwner }] };
    expect(await refused(db.call("UpdateTable", unknown))).toContain("ResourceNotFoundException");
  });

  test("two changes at once, and a malformed change", async () => {
    const both = [{ Create: byOwner }, { Delete: { IndexName: "other" } }];
    expect(await refused(update({}, { GlobalSecondaryIndexUpdates: both }))).toMatch(
      /^LimitExceededException: .*Only 1 online index/,
    );
    expect(await refused(update({ Create: null }))).toContain(
      "'globalSecondaryIndexUpdates.1.member.create'",
    );
    expect(await refused(update({ Delete: "x" }))).toContain(
      "'globalSecondaryIndexUpdates.1.member.delete'",
    );
    expect(await refused(update({ Create: byOwner }, { AttributeDefinitions: 7 }))).toContain(
      "'attributeDefinitions'",
    );
    expect(await refused(create(byOwner, definition("pk", "N"), definition("owner")))).toBe(
      "ValidationException: The attribute pk is of type S in this table",
    );
  });

  test("an index that a new table could not have", async () => {
    expect(await refused(create(byOwner))).toContain("not defined in AttributeDefinitions");
    expect(await refused(create({ ...byOwner, IndexName: "x" }, definition("owner")))).toContain(
      "greater than or equal to 3",
    );
    for (let n = 0; n < 20; n += 1)
      await create({ ...byOwner, IndexName: `index-${n}` }, definition("owner"));
    expect(await refused(create(byOwner))).toContain("exceeds the per-table limit of 20");
  });
});

test("dynalite handles an update of a table that changes no index", async () => {
  const throughput = { ReadCapacityUnits: 1, WriteCapacityUnits: 1 };
  await expect(
    update({ Update: { IndexName: "byOwner", ProvisionedThroughput: throughput } }),
  ).resolves.toMatchObject({
    TableDescription: { TableName: "tab" },
  });
  await expect(
    db.call("UpdateTable", { TableName: "tab", GlobalSecondaryIndexUpdates: 7 }),
  ).rejects.toThrow();
  await expect(
    db.call("UpdateTable", { TableName: "tab", GlobalSecondaryIndexUpdates: [null] }),
  ).rejects.toThrow();
});
