import type { Database } from "../../base/types/database.ts";
import type { OutboxRow, OutboxStore } from "../../parts/messages/outbox-store.ts";
import { asideItem, outboxAttributes } from "./aside-item.ts";
import { type Item, marshalled } from "./claim-form.ts";

/**
 * Creates an outbox in DynamoDB. The shard is the partition and the time is the sort key, so
 * pending rows are read in order and consistently. Dispatched rows are deleted.
 */
export function dynamoOutbox(database: Database, tableName: string): OutboxStore {
  const pending: OutboxStore["pending"] = async (shard, beforeSort, limit, afterSort) => {
    const { QueryCommand } = await import("../clients/dynamodb-sdk.ts");
    const { Items } = await database.send(
      new QueryCommand({
        TableName: tableName,
        KeyConditionExpression: "pk = :shard AND sk < :before",
        ExpressionAttributeValues: { ":shard": shard, ":before": beforeSort },
        Limit: limit,
        ...(afterSort === undefined ? {} : { ExclusiveStartKey: { pk: shard, sk: afterSort } }),
        ConsistentRead: true,
      }),
    );
    return (Items as NonNullable<typeof Items>).map(rowOf); // safe: a Query always returns them
  };
  return {
    pending,
    firsts: (shards, beforeSort) =>
      Promise.allSettled(shards.map((shard) => pending(shard, beforeSort, 1))),
    item: (row) => ({
      Put: {
        TableName: tableName,
        Item: { pk: row.shard, sk: row.sort, ...outboxAttributes(row) },
      },
    }),
    remove: async ({ shard, sort }) => {
      const { DeleteItemCommand } = await import("../clients/dynamodb-sdk.ts");
      await database.send(
        new DeleteItemCommand({
          TableName: tableName,
          Key: marshalled({ pk: shard, sk: sort }) as Item,
        }),
      );
    },
    setAside: async (row, reason, nowMs) => {
      const { TransactWriteCommand } = await import("../clients/dynamodb-sdk.ts");
      const aside = { TableName: tableName, Item: asideItem(row, reason, nowMs) };
      // If the row no longer exists, another process has dispatched it or set it aside.
      const own = {
        TableName: tableName,
        Key: { pk: row.shard, sk: row.sort },
        ConditionExpression: "attribute_exists(pk)",
      };
      try {
        await database.send(
          new TransactWriteCommand({ TransactItems: [{ Put: aside }, { Delete: own }] }),
        );
        return true;
      } catch (error) {
        const { CancellationReasons: reasons = [] } = error as {
          readonly CancellationReasons?: { Code?: string }[];
        }; // safe: the member is optional
        if (reasons.some(({ Code }) => Code === "ConditionalCheckFailed")) return false;
        throw error;
      }
    },
  };
}

function rowOf(item: Readonly<Record<string, unknown>>): OutboxRow {
  const { pk, sk, eventId, type, tenantId, envelope } = item;
  const [shard, sort] = [String(pk), String(sk)];
  if (typeof eventId === "string" && typeof type === "string" && typeof envelope === "string") {
    return {
      shard,
      sort,
      eventId,
      type,
      text: envelope,
      ...(typeof tenantId === "string" ? { tenantId } : {}),
    };
  }
  return {
    shard,
    sort,
    eventId: sort.slice(sort.indexOf("#") + 1),
    type: "unknown",
    text: "",
    unreadable: item,
  };
}
