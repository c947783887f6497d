import type { OutboxRow } from "../../parts/messages/outbox.ts";

/** The partition of what was set aside: no sweep looks there, also none of an older version. */
export const asidePartition = "aside";

/** A row that was set aside, as it is stored. */
export type AsideItem = Readonly<Record<string, unknown>>;

/** `<time>#<event ID>#shard#<n>`, or `…#due#<n>` of a job: in the order of time, and says where it came from. */
const asideSort = /^(.*)#((?:shard|due)#\d+)$/s;

/** A row as it is stored once it was set aside: all that it has, and why and when it was. */
export function asideItem(row: OutboxRow, reason: string, nowMs: number): AsideItem {
  return {
    ...(row.unreadable ?? outboxAttributes(row)),
    pk: asidePartition,
    sk: `${row.sort}#${row.shard}`,
    asideReason: reason,
    asideAt: new Date(nowMs).toISOString(),
  };
}

/** What a row has beside its key. */
export function outboxAttributes({ eventId, type, tenantId, text }: OutboxRow): AsideItem {
  return { eventId, type, ...(tenantId === undefined ? {} : { tenantId }), envelope: text };
}

/** The row as it was; `undefined` where nothing says which shard it came from. */
export function itemBefore({
  asideReason: _reason,
  asideAt: _at,
  ...item
}: AsideItem): AsideItem | undefined {
  const [, sort, shard] = asideSort.exec(String(item["sk"])) ?? [];
  return shard === undefined ? undefined : { ...item, pk: shard, sk: sort };
}
