import type { Database } from "../../base/types/database.ts";
import type { OutboxRow } from "../../parts/messages/outbox-store.ts";
import { marshalled } from "./claim-store.ts";
import { partKeys, partsOf } from "./large-rows.ts";
import { tableOf, transact } from "./table.ts";

/** Partition of the events that were set aside, which no version of the sweep reads. */
export const asidePartition = "aside";

export type AsideItem = Readonly<Record<string, unknown>>;

export type AsideStore = ReturnType<typeof dynamoAsideStore>;

export function dynamoAsideStore(database: Database, TableName: string) {
  const table = tableOf(database, TableName);
  return {
    list: async function* (): AsyncGenerator<AsideItem> {
      const pages = table.queryAll({
        KeyConditionExpression: "pk = :aside",
        ExpressionAttributeValues: { ":aside": asidePartition },
      });
      for await (const { Items = [] } of pages) yield* Items;
    },
    /**
     * Puts an event back into its shard, where the next sweep finds it. Resolves to `"foreign"` if the
     * item does not name its shard, and to `"gone"` if another process has put it back or removed it.
     */
    putBack: async (item: AsideItem): Promise<"put back" | "gone" | "foreign"> => {
      const before = itemBefore(item);
      if (before === undefined) return "foreign";
      // The condition lets only one of several processes put the event back.
      const Key = { pk: asidePartition, sk: item["sk"] };
      const failed = await transact(database, [
        { Put: { TableName, Item: before } },
        { Delete: { TableName, Key, ConditionExpression: "attribute_exists(pk)" } },
      ]);
      if (failed === undefined) return "put back";
      if (failed.codes.includes("ConditionalCheckFailed")) return "gone";
      throw failed.error;
    },
    remove: async (item: AsideItem): Promise<void> => {
      await table.remove(marshalled({ pk: asidePartition, sk: String(item["sk"]) }));
      const { pk, sk, parts = 0 } = itemBefore(item) ?? {};
      for (const part of partKeys({ shard: String(pk), sort: String(sk) }, Number(parts)))
        await table.remove(marshalled(part));
    },
  };
}

/** Sort key in that partition: `<time>#<event ID>#shard#<n>`, or `…#due#<n>` for a job. */
const asideSort = /^(.*)#((?:shard|due)#\d+)$/s;

export function asideItem(row: OutboxRow, reason: string, nowMs: number): AsideItem {
  return {
    ...(row.unreadable ?? outboxAttributes(row)),
    pk: asidePartition,
    sk: `${row.sort}#${row.shard}`,
    asideReason: reason,
    asideAt: new Date(nowMs).toISOString(),
  };
}

/** A large row has the number of its parts instead of the envelope. The parts do not move. */
export function outboxAttributes({ eventId, type, tenantId, text }: OutboxRow): AsideItem {
  const parts = partsOf(text).length;
  const content = parts === 0 ? { envelope: text } : { parts };
  return { eventId, type, ...(tenantId === undefined ? {} : { tenantId }), ...content };
}

/** Restores the item that was set aside. Returns `undefined` if it does not name its shard. */
export function itemBefore({
  asideReason: _reason,
  asideAt: _at,
  ...item
}: AsideItem): AsideItem | undefined {
  const [, sort, shard] = asideSort.exec(String(item["sk"])) ?? [];
  return shard === undefined ? undefined : { ...item, pk: shard, sk: sort };
}
