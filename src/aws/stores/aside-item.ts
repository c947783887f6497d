import type { OutboxRow } from "../../parts/messages/outbox-store.ts";

/**
 * Partition of the events that were set aside. No sweep reads it, not even one by an older version
 * of keelson.
 */
export const asidePartition = "aside";

/** Stored form of a row that was set aside. */
export type AsideItem = Readonly<Record<string, unknown>>;

/**
 * `<time>#<event ID>#shard#<n>`, or `…#due#<n>` for a job: sorts by time and contains the original
 * shard.
 */
const asideSort = /^(.*)#((?:shard|due)#\d+)$/s;

/**
 * Returns the stored form of a row that is set aside: all its attributes, and the reason and time.
 */
export function asideItem(row: OutboxRow, reason: string, nowMs: number): AsideItem {
  return {
    ...(row.unreadable ?? outboxAttributes(row)),
    pk: asidePartition,
    sk: `${row.sort}#${row.shard}`,
    asideReason: reason,
    asideAt: new Date(nowMs).toISOString(),
  };
}

/** Returns the attributes of a row without its key. */
export function outboxAttributes({ eventId, type, tenantId, text }: OutboxRow): AsideItem {
  return { eventId, type, ...(tenantId === undefined ? {} : { tenantId }), envelope: text };
}

/** Returns the original row; `undefined` if the item does not name its shard. */
export function itemBefore({
  asideReason: _reason,
  asideAt: _at,
  ...item
}: AsideItem): AsideItem | undefined {
  const [, sort, shard] = asideSort.exec(String(item["sk"])) ?? [];
  return shard === undefined ? undefined : { ...item, pk: shard, sk: sort };
}
