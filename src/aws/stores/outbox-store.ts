import type { Database } from "../../base/types/database.ts";
import type { DueStore } from "../../parts/messages/due-jobs.ts";
import type { OutboxRow, OutboxStore } from "../../parts/messages/outbox-store.ts";
import { asideItem, outboxAttributes } from "./aside-store.ts";
import { marshalled } from "./claim-store.ts";
import { largestParts, partKeys, partPuts, partsOf, readParts } from "./large-rows.ts";
import { tableOf, transact, transactIf } from "./table.ts";

/** Large rows in one page, which therefore has at most 4 MiB of their messages. */
const largeRowsPerPage = 4;

/**
 * A row's partition is its shard; its sort key starts with the time. Sending deletes the row. The
 * message of a large row is stored in parts, which are written, moved and deleted with it.
 */
export function dynamoOutbox(database: Database, TableName: string): OutboxStore {
  const table = tableOf(database, TableName);
  const before = (shard: string, sort: string) => ({
    KeyConditionExpression: "pk = :shard AND sk < :before",
    ExpressionAttributeValues: { ":shard": shard, ":before": sort },
  });
  const first = async (shard: string, beforeSort: string) => {
    const keys = { ...before(shard, beforeSort), ProjectionExpression: "sk", Limit: 1 };
    const { Items } = await table.query({ ...keys, ConsistentRead: false });
    // Safe: a Query always returns items.
    return (Items as NonNullable<typeof Items>).map(({ sk }) => ({ sort: String(sk) }));
  };
  const pending: OutboxStore["pending"] = async (shard, beforeSort, limit, afterSort) => {
    const { Items } = await table.query({
      ...before(shard, beforeSort),
      Limit: limit,
      ...(afterSort === undefined ? {} : { ExclusiveStartKey: { pk: shard, sk: afterSort } }),
    });
    const rows: OutboxRow[] = [];
    let large = 0;
    // Safe: a Query always returns items.
    for (const item of Items as NonNullable<typeof Items>) {
      if (typeof item["parts"] !== "number") rows.push(rowOf(item));
      else if (large++ === largeRowsPerPage) break;
      else rows.push(await wholeRow(database, TableName, item));
    }
    return rows;
  };
  return {
    pending,
    // Half the price of consistent reads. The next sweep finds a row that this one misses.
    firsts: (shards, beforeSort) =>
      Promise.allSettled(shards.map((shard) => first(shard, beforeSort))),
    items: (row) => [
      { Put: { TableName, Item: { pk: row.shard, sk: row.sort, ...outboxAttributes(row) } } },
      ...partPuts(TableName, row),
    ],
    remove: async (row) => {
      const { shard: pk, sort: sk, text } = row;
      const parts = partKeys(row, partsOf(text).length);
      if (parts.length === 0) return void (await table.remove(marshalled({ pk, sk })));
      const keys = [{ pk, sk }, ...parts];
      const failed = await transact(
        database,
        keys.map((Key) => ({ Delete: { TableName, Key } })),
      );
      if (failed !== undefined) throw failed.error;
    },
    setAside: async (row, reason, nowMs) => {
      // If the row no longer exists, another process has dispatched it or set it aside.
      const Key = { pk: row.shard, sk: row.sort };
      const items = [
        { Put: { TableName, Item: asideItem(row, reason, nowMs) } },
        { Delete: { TableName, Key, ConditionExpression: "attribute_exists(pk)" } },
      ];
      const token = crypto.randomUUID();
      const move = () => transact(database, items, token);
      // If only the answer was lost, no later sweep finds the row. Because of the token, the second
      // call then succeeds as well.
      const failed = await move().catch(move);
      if (failed === undefined) return true;
      if (failed.codes.includes("ConditionalCheckFailed")) return false;
      throw failed.error;
    },
  };
}

async function wholeRow(
  database: Database,
  tableName: string,
  item: Readonly<Record<string, unknown>>,
): Promise<OutboxRow> {
  const place = { shard: String(item["pk"]), sort: String(item["sk"]) };
  const envelope = await readParts(database, tableName, place, Number(item["parts"]));
  const row = rowOf({ ...item, envelope });
  return row.unreadable === undefined ? row : { ...row, unreadable: item };
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
    // A transaction succeeds again if the SDK repeats it because its answer was lost. The number of
    // parts is unknown, and a part that does not exist is deleted as well.
    takeBack: ({ shard, sort }, tenantId) => {
      const isOurs =
        tenantId === undefined ? "attribute_not_exists(tenantId)" : "tenantId = :tenant";
      const head = {
        TableName: tableName,
        Key: { pk: shard, sk: sort },
        ConditionExpression: `attribute_exists(pk) AND attribute_not_exists(isSending) AND ${isOurs}`,
        ...(tenantId && { ExpressionAttributeValues: { ":tenant": tenantId } }),
      };
      const parts = partKeys({ shard, sort }, largestParts);
      return transactIf(database, [
        { Delete: head },
        ...parts.map((Key) => ({ Delete: { TableName: tableName, Key } })),
      ]);
    },
  };
}
