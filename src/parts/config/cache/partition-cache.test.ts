import { expect, test } from "vitest";
import { pathFrom, systemPartition, tenantPartition, userPartition } from "../read/rows.ts";
import {
  createPartitionCache,
  type PartitionCache,
  pageOf,
  usersPerTenant,
} from "./partition-cache.ts";

/** The narrowest partition of a path, which is used as a whole. */
const use = (cache: PartitionCache<unknown>, partition: string) =>
  cache.use(pathFrom(partition))[0];

test("evicts the least recently used tenant together with its users", () => {
  const cache = createPartitionCache(2);
  const acme = use(cache, tenantPartition("acme"));
  const ann = use(cache, userPartition("acme", "ann"));
  const other = use(cache, tenantPartition("other"));
  const bob = use(cache, userPartition("other", "bob"));
  use(cache, userPartition("acme", "ann"));
  use(cache, tenantPartition("third"));

  expect([acme.isEvicted, ann.isEvicted, other.isEvicted, bob.isEvicted]).toEqual([
    false,
    false,
    true,
    true,
  ]);
  expect(use(cache, tenantPartition("acme"))).toBe(acme);
  expect(use(cache, tenantPartition("other"))).not.toBe(other);
  expect(use(cache, userPartition("other", "bob"))).not.toBe(bob);
});

test("bounds the users of one tenant, and evicts the least recently used first", () => {
  const cache = createPartitionCache(2);
  const users = Array.from({ length: 2 * usersPerTenant }, (_, index) =>
    use(cache, userPartition("acme", `u${index}`)),
  );
  use(cache, userPartition("acme", "u0"));
  use(cache, userPartition("acme", "one-more"));

  expect(users.map(({ isEvicted }) => isEvicted)).toEqual(users.map((_, index) => index === 1));
  expect(cache.size()).toEqual({ tenants: 1, users: 2 * usersPerTenant });
  expect(use(cache, tenantPartition("acme")).users.size).toBe(2 * usersPerTenant);
});

test("evicts a tenant with its users when a new user exceeds the limit", () => {
  const cache = createPartitionCache(1);
  for (let index = 0; index < usersPerTenant; index++)
    use(cache, userPartition("acme", `u${index}`));
  use(cache, userPartition("other", "bob"));

  expect(cache.size()).toEqual({ tenants: 1, users: 1 });
});

test("never evicts the system rows", () => {
  const cache = createPartitionCache(1);
  const system = use(cache, systemPartition());
  for (let index = 0; index < 10; index++) use(cache, tenantPartition(`t${index}`));

  expect(system.isEvicted).toBe(false);
  expect(use(cache, systemPartition())).toBe(system);
});

test("changes a page's stamp when its tenant is evicted", () => {
  const cache = createPartitionCache(1);
  const page = pageOf(use(cache, tenantPartition("acme")), "files", ["files:config:limit"]);
  const { stamp } = page;
  use(cache, tenantPartition("other"));

  expect(page.stamp).toBeGreaterThan(stamp);
});

test("stays within its limit after a hundred thousand tenants", () => {
  const cache = createPartitionCache(100);
  for (let index = 0; index < 100_000; index++) use(cache, userPartition(`t${index}`, "ann"));

  const { tenants, users } = cache.size();
  expect(users).toBe(tenants);
  expect(tenants).toBeLessThanOrEqual(100);
  expect(tenants).toBeGreaterThanOrEqual(90);
});
