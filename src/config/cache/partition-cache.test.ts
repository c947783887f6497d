import { expect, test } from "vitest";
import { systemPartition, tenantPartition, userPartition } from "../read/rows.ts";
import { createPartitionCache, pageOf, usersPerTenant } from "./partition-cache.ts";

test("the least recently used tenant goes first, and takes its users along", () => {
  const cache = createPartitionCache(2);
  const acme = cache.use(tenantPartition("acme"));
  const ann = cache.use(userPartition("acme", "ann"));
  const other = cache.use(tenantPartition("other"));
  const bob = cache.use(userPartition("other", "bob"));
  cache.use(userPartition("acme", "ann"));
  cache.use(tenantPartition("third"));

  expect([acme.isEvicted, ann.isEvicted, other.isEvicted, bob.isEvicted]).toEqual([false, false, true, true]);
  expect(cache.use(tenantPartition("acme"))).toBe(acme);
  expect(cache.use(tenantPartition("other"))).not.toBe(other);
  expect(cache.use(userPartition("other", "bob"))).not.toBe(bob);
});

test("one tenant's users are bounded too, the least recently used first", () => {
  const cache = createPartitionCache(2);
  const users = Array.from({ length: 2 * usersPerTenant }, (_, index) => cache.use(userPartition("acme", `u${index}`)));
  cache.use(userPartition("acme", "u0"));
  cache.use(userPartition("acme", "one-more"));

  expect(users.map(({ isEvicted }) => isEvicted)).toEqual(users.map((_, index) => index === 1));
  expect(cache.size()).toEqual({ tenants: 1, users: 2 * usersPerTenant });
  expect(cache.use(tenantPartition("acme")).users.size).toBe(2 * usersPerTenant);
});

test("a user who uses up the last place may belong to a tenant that goes with it", () => {
  const cache = createPartitionCache(1);
  for (let index = 0; index < usersPerTenant; index++) cache.use(userPartition("acme", `u${index}`));
  cache.use(userPartition("other", "bob"));

  expect(cache.size()).toEqual({ tenants: 1, users: 1 });
});

test("the rows that hold for all tenants always stay", () => {
  const cache = createPartitionCache(1);
  const system = cache.use(systemPartition());
  for (let index = 0; index < 10; index++) cache.use(tenantPartition(`t${index}`));

  expect(system.isEvicted).toBe(false);
  expect(cache.use(systemPartition())).toBe(system);
});

test("whoever holds rows of a tenant that went learns of it by the stamp", () => {
  const cache = createPartitionCache(1);
  const page = pageOf(cache.use(tenantPartition("acme")), "files", ["files:config:limit"]);
  const { stamp } = page;
  cache.use(tenantPartition("other"));

  expect(page.stamp).toBeGreaterThan(stamp);
});

test("a hundred thousand tenants that pass through leave as many as are kept", () => {
  const cache = createPartitionCache(100);
  for (let index = 0; index < 100_000; index++) cache.use(userPartition(`t${index}`, "ann"));

  expect(cache.size()).toEqual({ tenants: 100, users: 100 });
});
