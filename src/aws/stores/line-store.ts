import type { Database } from "../../base/types/database.ts";
import type { LineStore, StoredLine } from "../../parts/limits/line.ts";
import { marshalled } from "./claim-store.ts";
import { numbersIn, tableOf, transact } from "./table.ts";

/** One row for each ordered group in which a job has waited, in the table of claims. */
export function dynamoLines(database: Database, TableName: string): LineStore {
  const table = tableOf(database, TableName);
  return {
    read: async (group) => {
      const item = await table.get(keyOf(group));
      if (item === undefined) return undefined;
      const names = ["first", "next", "firstBy", "turn", "dueMs", "version"] as const;
      return { ...item, ...numbersIn(item, ...names) };
    },
    change: async ({ group, read, line, tenantId, expiresAt, items }) => {
      const { first, next, firstBy, turn, dueMs } = line;
      const numbers = { first, next, firstBy, turn, dueMs, version: (read?.version ?? 0) + 1 };
      const owned = tenantId === undefined ? {} : { tenantId };
      const Item = { ...keyOf(group), ...numbers, ...owned, expiration: expiresAt };
      if (items.length === 0)
        return table.put(marshalled(Item), {
          ConditionExpression: isUnchanged(read),
          ...(read && { ExpressionAttributeValues: marshalled({ ":version": read.version }) }),
        });
      const put = {
        TableName,
        Item,
        ConditionExpression: isUnchanged(read),
        ...(read && { ExpressionAttributeValues: { ":version": read.version } }),
      };
      const failed = await transact(database, [{ Put: put }, ...items]);
      if (failed === undefined) return true;
      if (failed.codes.some((code) => code === "ConditionalCheckFailed")) return false;
      if (failed.codes.some((code) => code === "TransactionConflict")) return false;
      throw failed.error;
    },
  };
}

function isUnchanged(read: StoredLine | undefined): string {
  return read === undefined ? "attribute_not_exists(pk)" : "version = :version";
}

function keyOf(group: string) {
  return { pk: `line#${group}`, sk: "line" };
}
