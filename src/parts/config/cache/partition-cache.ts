import { type PartitionPath, systemPartition } from "../read/rows.ts";
import { createPage, type Page } from "./row-page.ts";

export interface CachedPartition<Value> {
  readonly partition: string;
  readonly pages: Map<string, Page>;
  /** Values composed from pages, of which this partition is the narrowest, by key. */
  readonly values: Map<string, Value>;
  /** Tenant of a user. */
  readonly owner: CachedPartition<Value> | undefined;
  readonly users: Set<CachedPartition<Value>>;
  /** A holder must then get a new one. */
  isEvicted: boolean;
}

export type PartitionCache<Value> = ReturnType<typeof createPartitionCache<Value>>;

/** On average; a single tenant may use the whole budget. */
export const usersPerTenant = 4;

/** Evicts the least recently used tenants, together with their users. */
export function createPartitionCache<Value>(maxTenants: number) {
  const system = createPartition<Value>(systemPartition());
  const tenants = new Map<string, CachedPartition<Value>>();
  const users = new Map<string, CachedPartition<Value>>();
  // The last entry stays in place: reinserting leaves garbage in a Map that survives young
  // collections, and most reads repeat the last owner.
  let [lastTenant, lastUser] = [system, system];

  const useTenant = (partition: string) => {
    if (lastTenant.partition === partition && !lastTenant.isEvicted) return lastTenant;
    const tenant = moveToEnd(tenants, partition);
    lastTenant = tenant;
    if (tenants.size > maxTenants) {
      for (const user of evictOldest(tenants).users) evict(users, user);
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
    /** Returns the entries of a path and marks tenant and user as most recently used. */
    use: (
      path: PartitionPath,
    ): readonly [narrowest: CachedPartition<Value>, ...broader: CachedPartition<Value>[]] => {
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

/** A Map keeps the order of insertion: the last entry is the most recently used. */
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
  // Writes no longer reach these pages: with the new stamp all holders drop their rows.
  for (const page of part.pages.values()) page.stamp += 1;
  parts.delete(part.partition);
}
