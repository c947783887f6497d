import type { Database } from "../../base/types/database.ts";
import type { DueStore } from "../../parts/messages/due-jobs.ts";
import type { OutboxRow, OutboxStore } from "../../parts/messages/outbox-store.ts";
import { asideItem, outboxAttributes } from "./aside-store.ts";
import { marshalled } from "./claim-store.ts";
import { tableOf, transact } from "./table.ts";

/** A row's partition is its shard; its sort key starts with the time. Sending deletes the row. */
export function dynamoOutbox(database: Database, TableName: string): OutboxStore {
  const table = tableOf(database, TableName);
  const pending: OutboxStore["pending"] = async (shard, beforeSort, limit, afterSort) => {
    const { Items } = await table.query({
      KeyConditionExpression: "pk = :shard AND sk < :before",
      ExpressionAttributeValues: { ":shard": shard, ":before": beforeSort },
      Limit: limit,
      ...(afterSort === undefined ? {} : { ExclusiveStartKey: { pk: shard, sk: afterSort } }),
    });
    return (Items as NonNullable<typeof Items>).map(rowOf); // safe: a Query always returns items
  };
  return {
    pending,
    firsts: (shards, beforeSort) =>
      Promise.allSettled(shards.map((shard) => pending(shard, beforeSort, 1))),
    item: (row) => ({
      Put: { TableName, Item: { pk: row.shard, sk: row.sort, ...outboxAttributes(row) } },
    }),
    remove: async ({ shard, sort }) => {
      await table.remove(marshalled({ pk: shard, sk: sort }));
    },
    setAside: async (row, reason, nowMs) => {
      // If the row no longer exists, another process has dispatched it or set it aside.
      const Key = { pk: row.shard, sk: row.sort };
      const failed = await transact(database, [
        { Put: { TableName, Item: asideItem(row, reason, nowMs) } },
        { Delete: { TableName, Key, ConditionExpression: "attribute_exists(pk)" } },
      ]);
      if (failed === undefined) return true;
      if (failed.codes.includes("ConditionalCheckFailed")) return false;
      throw failed.error;
    },
  };
}

function rowOf(item: Readonly<Record<string, unknown>>): OutboxRow {
  const { pk, sk, eventId, type, tenantId, envelope: text } = item;
  const [shard, sort] = [String(pk), String(sk)];
  if (typeof eventId === "string" && typeof type === "string" && typeof text === "string") {
    const whose = typeof tenantId === "string" ? { tenantId } : {};
    return { shard, sort, eventId, type, text, ...whose };
  }
  const id = sort.slice(sort.indexOf("#") + 1);
  return { shard, sort, eventId: id, type: "unknown", text: "", unreadable: item };
}

export function dynamoDueJobs(database: Database, tableName: string): DueStore {
  const table = tableOf(database, tableName);
  return {
    begin: async ({ shard, sort }) => {
      const change = {
        UpdateExpression: "SET isSending = :yes",
        ConditionExpression: "attribute_exists(pk)",
        ExpressionAttributeValues: { ":yes": { BOOL: true } },
      };
      return (await table.update(marshalled({ pk: shard, sk: sort }), change)) !== undefined;
    },
    takeBack: ({ shard, sort }, tenantId) => {
      const isOurs =
        tenantId === undefined ? "attribute_not_exists(tenantId)" : "tenantId = :tenant";
      const tenant = tenantId && { ExpressionAttributeValues: { ":tenant": { S: tenantId } } };
      const ConditionExpression = `attribute_exists(pk) AND attribute_not_exists(isSending) AND ${isOurs}`;
      return table.remove(marshalled({ pk: shard, sk: sort }), { ConditionExpression, ...tenant });
    },
  };
}
