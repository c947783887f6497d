import { expect, test } from "vitest";
import { openDynalite } from "../service/dynalite.ts";
import { changeTable, settleTables } from "./table-changes.ts";

async function withTable() {
  const dynalite = await openDynalite();
  const description = {
    TableName: "tab",
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: ["pk", "owner"].map((AttributeName) => ({
      AttributeName,
      AttributeType: "S",
    })),
    KeySchema: [{ AttributeName: "pk", KeyType: "HASH" }],
  };
  const index = {
    IndexName: "byOwner",
    KeySchema: [{ AttributeName: "owner", KeyType: "HASH" }],
    Projection: { ProjectionType: "ALL" },
  };
  const indexed = { ...description, GlobalSecondaryIndexes: [index] };
  const create = async (input: object) =>
    changeTable(dynalite, "CreateTable", dynalite.prepare("CreateTable", input));
  const run = (operation: string, input: object) =>
    dynalite.run(operation, dynalite.prepare(operation, input));
  /** Puts a table into the state that a killed process left it in. */
  const interrupt = async (status: string) => {
    const stored = (await dynalite.store.db.get("table~tab")) as object; // the table that was created
    await dynalite.store.db.batch([
      { type: "put", key: "table~tab", value: { ...stored, TableStatus: status } },
    ]);
  };
  return {
    dynalite,
    create,
    run,
    interrupt,
    indexed,
    plain: { ...description, AttributeDefinitions: description.AttributeDefinitions.slice(0, 1) },
  };
}

test("a table is active once CreateTable has answered", async () => {
  const { dynalite, create, indexed } = await withTable();
  await create(indexed);
  expect(await dynalite.table("tab")).toMatchObject({
    TableStatus: "ACTIVE",
    GlobalSecondaryIndexes: [{ IndexStatus: "ACTIVE" }],
  });
});

test.each(["CREATING", "UPDATING"])(
  "a table that was %s when the process was killed is active afterwards",
  async (status) => {
    for (const kind of ["indexed", "plain"] as const) {
      const { dynalite, create, interrupt, ...descriptions } = await withTable();
      await create(descriptions[kind]);
      await interrupt(status);
      await settleTables(dynalite);
      expect(await dynalite.table("tab")).toMatchObject({ TableStatus: "ACTIVE" });
    }
  },
);

test("a table whose deletion was interrupted is gone, with its items and index entries", async () => {
  const { dynalite, create, run, interrupt, indexed } = await withTable();
  await create(indexed);
  await run("PutItem", { TableName: "tab", Item: { pk: { S: "a" }, owner: { S: "o" } } });
  await interrupt("DELETING");
  await settleTables(dynalite);
  await expect(dynalite.table("tab")).rejects.toThrow("not found");
  await create(indexed);
  expect(await run("Scan", { TableName: "tab" })).toMatchObject({ Count: 0 });
  expect(await run("Scan", { TableName: "tab", IndexName: "byOwner" })).toMatchObject({ Count: 0 });
});

test("leaves a settled table unchanged", async () => {
  const { dynalite, create, run, indexed } = await withTable();
  await create(indexed);
  await run("PutItem", { TableName: "tab", Item: { pk: { S: "a" } } });
  const before = await dynalite.store.db.get("table~tab");
  await settleTables(dynalite);
  expect(await dynalite.store.db.get("table~tab")).toEqual(before);
  expect(await run("Scan", { TableName: "tab" })).toMatchObject({ Count: 1 });
});
