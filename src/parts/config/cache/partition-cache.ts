import { type PartitionPath, systemPartition } from "../read/rows.ts";
import type { Page } from "./row-page.ts";

export interface CachedPartition<Value> {
  readonly partition: string;
  readonly pages: Map<string, Page>;
  /** Values by key, composed from pages of this partition and broader ones. */
  readonly values: Map<string, Value>;
  readonly owner: CachedPartition<Value> | undefined;
  readonly users: Set<CachedPartition<Value>>;
  /** Holders must then call `use` again. */
  isEvicted: boolean;
}

export type PartitionCache<Value> = ReturnType<typeof createPartitionCache<Value>>;

/** An average: one tenant may use the whole budget. */
export const usersPerTenant = 4;

export function createPartitionCache<Value>(maxTenants: number) {
  const system = createPartition<Value>(systemPartition());
  const users = recentlyUsed<Value>(maxTenants * usersPerTenant, (user) =>
    user.owner?.users.delete(user),
  );
  const tenants = recentlyUsed<Value>(maxTenants, ({ users: ofTenant }) => {
    for (const user of ofTenant) users.evict(user);
  });
  return {
    use: (
      path: PartitionPath,
    ): readonly [narrowest: CachedPartition<Value>, ...broader: CachedPartition<Value>[]] => {
      const ofTenant = path.at(-2);
      const ofUser = path.at(-3);
      if (ofTenant === undefined) return [system];
      const tenant = tenants.use(ofTenant.partition);
      if (ofUser === undefined) return [tenant, system];
      const user = users.use(ofUser.partition, tenant);
      tenant.users.add(user);
      return [user, tenant, system];
    },
    size: () => ({ tenants: tenants.size(), users: users.size() }),
  };
}

export function pageOf(
  part: CachedPartition<unknown>,
  feature: string,
  keys: readonly string[],
): Page {
  const known = part.pages.get(feature);
  if (known !== undefined) return known;
  const page: Page = {
    partition: part.partition,
    keys,
    rows: new Map(),
    stamp: 0,
    askedMs: undefined,
    dueMs: 0,
    staleMs: 0,
    flight: undefined,
    failure: undefined,
    reportedMs: undefined,
  };
  part.pages.set(feature, page);
  return page;
}

function createPartition<Value>(
  partition: string,
  owner?: CachedPartition<Value>,
): CachedPartition<Value> {
  return {
    partition,
    owner,
    pages: new Map(),
    values: new Map(),
    users: new Set(),
    isEvicted: false,
  };
}

function recentlyUsed<Value>(limit: number, onEvict: (oldest: CachedPartition<Value>) => void) {
  const parts = new Map<string, CachedPartition<Value>>();
  // Most reads repeat the last owner. Reinserting its entry would leave garbage in the Map that
  // survives young-generation collections.
  let last: CachedPartition<Value> | undefined;

  const evict = (part: CachedPartition<Value>): void => {
    part.isEvicted = true;
    // Later writes do not reach these pages, so the new stamp makes all holders drop their rows.
    for (const page of part.pages.values()) page.stamp += 1;
    parts.delete(part.partition);
  };
  /** Evicts a tenth together, because iterating a `Map` passes over every entry deleted before. */
  const evictOldest = (): void => {
    for (const oldest of parts.values()) {
      if (parts.size <= Math.ceil(limit * 0.9)) return;
      evict(oldest);
      onEvict(oldest);
    }
  };
  return {
    evict,
    size: () => parts.size,
    use: (partition: string, owner?: CachedPartition<Value>): CachedPartition<Value> => {
      if (last?.partition === partition && !last.isEvicted) return last;
      last = parts.get(partition) ?? createPartition(partition, owner);
      parts.delete(partition);
      parts.set(partition, last);
      if (parts.size > limit) evictOldest();
      return last;
    },
  };
}
