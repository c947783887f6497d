import { expect, test } from "vitest";
import type { StoredTenant, TenantStore } from "./tenant.ts";
import { createTenants } from "./tenants.ts";

test("a change is tried again if another process has changed the tenant since it was read", async () => {
  const rows = new Map<string, StoredTenant>();
  const noted: unknown[] = [];
  let meanwhile = () => {
    rows.set("acme", { ...acme, suspendedMs: 7, reason: "first" });
    meanwhile = () => undefined;
  };
  const acme: StoredTenant = { tenantId: "acme", timeZone: "UTC", createdMs: 0 };
  rows.set("acme", acme);
  const store: Pick<TenantStore, "read" | "change"> = {
    read: async (id) => rows.get(id),
    change: async (tenant, changed) => {
      meanwhile();
      if (rows.get(tenant.tenantId)?.suspendedMs !== tenant.suspendedMs) return false;
      rows.set(tenant.tenantId, { ...tenant, ...changed });
      return true;
    },
  };
  const tenants = createTenants({
    store: store as TenantStore, // safe: `suspend` calls no other method
    suspensions: { note: (...given) => void noted.push(given) },
    clock: { now: () => 9 },
    log: { info: () => undefined },
  });

  expect((await tenants.suspend("acme", { reason: "second" })).suspended).toEqual({
    at: "1970-01-01T00:00:00.007Z",
    reason: "second",
  });
  expect(noted).toEqual([["acme", true]]);
});

test("a change that other processes prevent five times fails with a 503, and no further attempt", async () => {
  let attempts = 0;
  const tenant: StoredTenant = { tenantId: "acme", timeZone: "UTC", createdMs: 0 };
  const store: Pick<TenantStore, "read" | "change"> = {
    read: async () => tenant,
    change: async () => {
      attempts += 1;
      if (attempts > 5) throw new Error("too many attempts");
      return false;
    },
  };
  const tenants = createTenants({
    store: store as TenantStore, // safe: `resume` calls no other method
    suspensions: { note: () => undefined },
    clock: { now: () => 9 },
    log: { info: () => undefined },
  });

  await expect(tenants.resume("acme")).rejects.toMatchObject({
    status: 503,
    message: "The tenant acme keeps changing; try again",
    headers: { "retry-after": "1" },
  });
  expect(attempts).toBe(5);
});

test("a list with a tenant whose time was changed by hand names the tenant", async () => {
  const stored: StoredTenant = { tenantId: "acme", timeZone: "UTC", createdMs: Number.NaN };
  const store: Pick<TenantStore, "page"> = {
    page: async () => ({ items: [stored], next: undefined }),
  };
  const tenants = createTenants({
    store: store as TenantStore, // safe: `list` calls no other method
    suspensions: { note: () => undefined },
    clock: { now: () => 9 },
    log: { info: () => undefined },
  });
  await expect(tenants.list()).rejects.toThrow(
    'the registration of the tenant "acme" cannot be read: a time is NaN; correct its rows',
  );
});
