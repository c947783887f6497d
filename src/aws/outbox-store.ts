import type { Database } from "../context/pipeline-context.ts";
import type { OutboxRow, OutboxStore } from "../events/outbox.ts";
import { type Item, marshalled } from "./claim-item.ts";

/**
 * The outbox in DynamoDB: the shard is the partition and the time the sort key, so that the rows that wait are read in their
 * order and consistently; what was dispatched is deleted.
 */
export function dynamoOutbox(database: Database, tableName: string): OutboxStore {
  return {
    item: ({ shard, sort, eventId, type, text }) => ({
      Put: { TableName: tableName, Item: { pk: shard, sk: sort, eventId, type, envelope: text } },
    }),
    remove: async ({ shard, sort }) => {
      const { DeleteItemCommand } = await import("./dynamodb-sdk.ts");
      await database.send(new DeleteItemCommand({ TableName: tableName, Key: marshalled({ pk: shard, sk: sort }) as Item }));
    },
    pending: async (shard, beforeSort, limit, afterSort) => {
      const { QueryCommand } = await import("./dynamodb-sdk.ts");
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
      return (Items as NonNullable<typeof Items>).map(rowOf); // safe: a Query always has them
    },
  };
}

function rowOf({ pk, sk, eventId, type, envelope }: Readonly<Record<string, unknown>>): OutboxRow {
  return { shard: String(pk), sort: String(sk), eventId: String(eventId), type: String(type), text: String(envelope) };
}
