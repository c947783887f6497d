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
