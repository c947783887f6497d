import type { TransactionItem } from "../once/claim-store.ts";
import type { Contested } from "../once/contested.ts";
import type { QuotaPeriod } from "./quota-period.ts";

/** Starts the partition of a tenant's quotas. A claim's partition is a hash, without `#`. */
export const quotaPartition = "quota#";

/** Row of a tenant's usage of a quota in one period. */
export interface QuotaRow {
  readonly tenantId: string;
  /** Full name of the quota: `files.storage`. */
  readonly quota: string;
  readonly period: QuotaPeriod;
}

/** Condition on the usage that a row must have. `undefined` is a row that does not exist. */
export type UsageCondition =
  | { readonly atMost: number }
  | { readonly atLeast: number }
  | { readonly exactly: number | undefined };

export type UsageWrite =
  | { readonly kind: "add"; readonly number: number; readonly condition: UsageCondition }
  | { readonly kind: "set"; readonly number: number; readonly condition?: UsageCondition };

export interface StoredUsage {
  readonly tenantId: string;
  /** Full name of the quota: `files.storage`. */
  readonly quota: string;
  /** `2026-11-28`, `2026-11` or `forever`. */
  readonly period: string;
  readonly used: number;
}

export interface QuotaStore {
  /** Reads consistently. Returns `undefined` if the row does not exist. */
  read(row: QuotaRow): Promise<number | undefined>;
  item(row: QuotaRow, write: UsageWrite): TransactionItem;
  /** Reads the usage in all periods whose rows still exist. Without a tenant, scans the table. */
  list(
    tenantId: string | undefined,
    onPage?: (scanned: number) => void,
  ): AsyncGenerator<StoredUsage>;
}

/** Change of a row by one commit: sets the usage, if `set` is given, then adds to it. */
export interface QuotaChange {
  readonly row: QuotaRow;
  readonly set?: number | undefined;
  readonly add: number;
  readonly limit: number;
  /** Creates the error for a usage that leaves too little room. */
  readonly refusal: (used: number) => Error;
}

/** Merges changes of the same row, because a transaction writes a row once. The last limit counts. */
export function merged(changes: readonly QuotaChange[]): readonly QuotaChange[] {
  const byRow = new Map<string, QuotaChange>();
  for (const change of changes) {
    const { tenantId, quota, period } = change.row;
    const key = JSON.stringify([tenantId, quota, period.id]);
    const before = byRow.get(key);
    // A correction replaces earlier changes.
    const isFirst = before === undefined || change.set !== undefined;
    byRow.set(key, isFirst ? change : { ...change, set: before.set, add: before.add + change.add });
  }
  return [...byRow.values()].filter(({ set, add }) => set !== undefined || add !== 0);
}

/**
 * Returns the item of a change. It assumes that there is room, and reads the row only if its
 * condition fails:
 *
 * | change | condition | usage after a failed condition | then |
 * |---|---|---|---|
 * | takes n | usage + n <= limit | it is too high | the commit fails |
 * | | | it leaves room: another commit gave back | tries again |
 * | gives back n | usage >= n | less than n | sets 0 if the usage is still the same |
 * | | | n or more: another commit took some | tries again |
 * | sets | none | | |
 *
 * @throws the refusal of a change that sets the usage and then takes more than is left.
 */
export function contested(store: QuotaStore, change: QuotaChange): Contested {
  const { row, set, add, limit, refusal } = change;
  if (set !== undefined) {
    if (add > 0 && set + add > limit) throw refusal(set);
    const item = store.item(row, { kind: "set", number: Math.max(0, set + add) });
    return fixed(item);
  }
  const condition = add > 0 ? { atMost: limit - add } : { atLeast: -add };
  const item = store.item(row, { kind: "add", number: add, condition });
  const again = async (): Promise<Contested> => {
    const used = await store.read(row);
    if (add > 0 && (used ?? 0) + add > limit) throw refusal(used ?? 0);
    if (add > 0 || (used ?? 0) >= -add) return { item, again };
    const emptied = store.item(row, { kind: "set", number: 0, condition: { exactly: used } });
    return { item: emptied, again };
  };
  return { item, again };
}

function fixed(item: TransactionItem): Contested {
  const itself: Contested = { item, again: async () => itself };
  return itself;
}
