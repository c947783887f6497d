import type { OutboxRow } from "../../parts/messages/outbox-store.ts";

/** Partition of the events that were set aside, which no version of the sweep reads. */
export const asidePartition = "aside";

export type AsideItem = Readonly<Record<string, unknown>>;

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

export function outboxAttributes({ eventId, type, tenantId, text }: OutboxRow): AsideItem {
  return { eventId, type, ...(tenantId === undefined ? {} : { tenantId }), envelope: text };
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
