import { type PartitionPath, systemPartition } from "../read/rows.ts";
import { createPage, type Page } from "./row-page.ts";

/** What is kept of one partition. */
export interface CachedPartition<Value> {
  readonly partition: string;
  /** The pages, by feature. */
  readonly pages: Map<string, Page>;
  /** What was put together from pages, by key; this partition is the narrowest of them. */
  readonly values: Map<string, Value>;
  /** The tenant of a user. */
  readonly owner: CachedPartition<Value> | undefined;
  /** Those of the users of this tenant. */
  readonly users: Set<CachedPartition<Value>>;
  /** It is no longer in the cache: a holder has to get another. */
  isEvicted: boolean;
}

/** Partitions by name, bounded: the least recently used tenants go first, and take their users along. */
export interface PartitionCache<Value> {
  /** What is kept of each partition of a path, made where there is none; its tenant and user are then the most recently used. */
  use(
    path: PartitionPath,
  ): readonly [narrowest: CachedPartition<Value>, ...broader: CachedPartition<Value>[]];
  /** How many tenants and users are kept. */
  size(): { readonly tenants: number; readonly users: number };
}

/** How many users are kept for each tenant that may be kept, on average: one tenant may have them all. */
export const usersPerTenant = 4;

/** Makes an empty cache of at most `maxTenants` tenants, and four times as many users. */
export function createPartitionCache<Value>(maxTenants: number): PartitionCache<Value> {
  const system = createPartition<Value>(systemPartition());
  const tenants = new Map<string, CachedPartition<Value>>();
  const users = new Map<string, CachedPartition<Value>>();
  // What is at the end already stays there: a Map whose entries come and go leaves garbage that outlives
  // young collections, and most reads repeat the last owner.
  let [lastTenant, lastUser] = [system, system];

  const useTenant = (partition: string) => {
    if (lastTenant.partition === partition && !lastTenant.isEvicted) return lastTenant;
    const tenant = moveToEnd(tenants, partition);
    lastTenant = tenant;
    if (tenants.size > maxTenants) {
      const oldest = evictOldest(tenants);
      for (const user of oldest.users) evict(users, user);
    }
    return tenant;
  };
  const useUser = (partition: string, tenant: CachedPartition<Value>) => {
    if (lastUser.partition === partition && !lastUser.isEvicted) return lastUser;
    const user = moveToEnd(users, partition, tenant);
    lastUser = user;
    tenant.users.add(user);
    if (users.size > maxTenants * usersPerTenant) {
      const oldest = evictOldest(users);
      oldest.owner?.users.delete(oldest);
    }
    return user;
  };
  return {
    use: (path) => {
      const ofTenant = path.at(-2);
      const ofUser = path.at(-3);
      if (ofTenant === undefined) return [system];
      const tenant = useTenant(ofTenant.partition);
      return ofUser === undefined
        ? [tenant, system]
        : [useUser(ofUser.partition, tenant), tenant, system];
    },
    size: () => ({ tenants: tenants.size, users: users.size }),
  };
}

/** The page of a feature in a partition, made where there is none. */
export function pageOf(
  part: CachedPartition<unknown>,
  feature: string,
  keys: readonly string[],
): Page {
  const known = part.pages.get(feature);
  if (known !== undefined) return known;
  const page = createPage(part.partition, keys);
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

/** A Map keeps the order of insertion: what was used last stands at its end. */
function moveToEnd<Value>(
  parts: Map<string, CachedPartition<Value>>,
  partition: string,
  owner?: CachedPartition<Value>,
): CachedPartition<Value> {
  const part = parts.get(partition) ?? createPartition(partition, owner);
  parts.delete(partition);
  parts.set(partition, part);
  return part;
}

/** Called only where there are parts. */
function evictOldest<Value>(parts: Map<string, CachedPartition<Value>>): CachedPartition<Value> {
  // Safe: the map is not empty.
  const oldest = parts.values().next().value as CachedPartition<Value>;
  evict(parts, oldest);
  return oldest;
}

function evict<Value>(
  parts: Map<string, CachedPartition<Value>>,
  part: CachedPartition<Value>,
): void {
  part.isEvicted = true;
  // Writes no longer reach these pages: holders of their rows let go.
  for (const page of part.pages.values()) page.stamp += 1;
  parts.delete(part.partition);
}
