import { setTimeout as delay } from "node:timers/promises";
import {
  type Dynalite,
  indexPrefix,
  itemPrefix,
  namesUnder,
  rangeOf,
  type Table,
} from "../service/dynalite.ts";
import { forgetTimeToLive } from "./time-to-live.ts";

/**
 * Runs an operation and waits until its table is active or gone, because dynalite's late writes
 * must not overlap with another operation.
 */
export async function changeTable(dynalite: Dynalite, operation: string, prepared: object) {
  const { TableName: name } = prepared as { TableName?: string }; // tag operations name an ARN instead
  if (name === undefined) return dynalite.run(operation, prepared);
  if (operation === "DeleteTable") await dynalite.store.db.batch([forgetTimeToLive(name)]);
  const answer = await dynalite.run(operation, prepared);
  while (isChanging(await tableRecord(dynalite, name))) await delay(1);
  return answer;
}

/** Completes table changes that a killed process left: activates tables, or deletes their data. */
export async function settleTables(dynalite: Dynalite) {
  for (const name of await namesUnder(dynalite.store, "table~")) {
    const table = await tableRecord(dynalite, name);
    if (table?.TableStatus === "DELETING") await removeTable(dynalite, name);
    else if (isChanging(table))
      await dynalite.store.db.batch([
        { type: "put", key: `table~${name}`, value: activated(table) },
      ]);
  }
}

async function tableRecord(dynalite: Dynalite, name: string): Promise<Table | undefined> {
  return (await dynalite.store.db.get(`table~${name}`)) as Table | undefined; // dynalite's key and value
}

function isChanging(table: Table | undefined): table is Table {
  return table !== undefined && table.TableStatus !== "ACTIVE";
}

function activated(table: Table) {
  const { GlobalSecondaryIndexes: indexes } = table;
  const active = indexes?.map((index) => ({ ...index, IndexStatus: "ACTIVE" }));
  return { ...table, TableStatus: "ACTIVE", ...(active && { GlobalSecondaryIndexes: active }) };
}

async function removeTable(dynalite: Dynalite, name: string) {
  const indexes = [indexPrefix("Local", name), indexPrefix("Global", name)];
  for (const prefix of [itemPrefix(name), ...indexes, `tag-${name}~`])
    await dynalite.store.db.clear(rangeOf(prefix));
  await dynalite.store.db.batch([{ type: "del", key: `table~${name}` }, forgetTimeToLive(name)]);
}
