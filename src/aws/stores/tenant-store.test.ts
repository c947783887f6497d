import { afterAll, beforeAll, expect, test } from "vitest";
import { buildServer } from "../../app/server/server.ts";
import type { Database } from "../../base/types/database.ts";
import type { StoredTenant, TenantStore } from "../../parts/tenant-registry/tenant.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { openDatabase } from "../clients/dynamodb.ts";
import { dynamoTenants } from "./tenant-store.ts";

let app: TestApp;
let database: Database;
let store: TenantStore;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [] })); // makes the table
  const { AWS_ACCESS_KEY_ID = "", AWS_SECRET_ACCESS_KEY = "" } = app.env;
  database = await openDatabase({
    endpoint: app.env["AWS_ENDPOINT_URL"],
    region: app.env["AWS_REGION"],
    credentials: { accessKeyId: AWS_ACCESS_KEY_ID, secretAccessKey: AWS_SECRET_ACCESS_KEY },
  });
  store = dynamoTenants(database, app.env["KEELSON_TABLE_ONCE"] ?? "keelson-once");
});
afterAll(async () => {
  database.destroy();
  await app.close();
});

const of = (tenantId: string, timeZone: string, createdMs: number): StoredTenant => ({
  ...{ tenantId, timeZone, createdMs },
});

test("a page has the tenants of one time zone, or of all, and a zone the time of its first tenant", async () => {
  const added = [
    of("b", "Asia/Tokyo", 3),
    of("a", "Asia/Tokyo", 4),
    of("c", "Asia/Tokyo2", 5),
    of("d", "America/Lima", 6),
  ];
  for (const tenant of added) expect(await store.add(tenant)).toBe(true);
  const idsOf = async (...given: Parameters<TenantStore["page"]>) => {
    const { items, next } = await store.page(...given);
    return [items.map(({ tenantId }) => tenantId), next?.tenantId];
  };
  expect(await idsOf(9, undefined, "Asia/Tokyo")).toEqual([["a", "b"], undefined]);
  expect(await idsOf(1, undefined, "Asia/Tokyo")).toEqual([["a"], "a"]);
  expect(await idsOf(9, of("a", "Asia/Tokyo", 0), "Asia/Tokyo")).toEqual([["b"], undefined]);
  expect(await idsOf(9)).toEqual([["d", "a", "b", "c"], undefined]);
  expect(await store.timeZones()).toEqual([
    { timeZone: "America/Lima", sinceMs: 6 },
    { timeZone: "Asia/Tokyo", sinceMs: 3 },
    { timeZone: "Asia/Tokyo2", sinceMs: 5 },
  ]);
});

test("a suspended tenant is removed as it was read, and any tenant is changed as it was read", async () => {
  const tenant = of("e", "UTC", 1);
  expect(await store.change(tenant, undefined)).toBe(false);
  await store.add(tenant);
  expect(await store.add(tenant)).toBe(false);
  expect(await store.remove(tenant)).toBe(false);
  const suspension = { suspendedMs: 2, reason: "unpaid" };
  expect(await store.change(tenant, suspension)).toBe(true);
  expect(await store.change(tenant, suspension)).toBe(false);
  expect(await store.read("e")).toEqual({ ...tenant, ...suspension });
  expect(await store.remove(tenant)).toBe(false);
  const first = { ...tenant, ...suspension };
  expect(await store.change(first, undefined)).toBe(true);
  const second = { ...suspension, suspendedMs: 3 };
  expect(await store.change(tenant, second)).toBe(true);
  expect(await store.remove(first)).toBe(false);
  expect(await store.remove({ ...tenant, ...second })).toBe(true);
  expect(await store.read("e")).toBeUndefined();
  expect((await store.page(9, undefined, "UTC")).items).toEqual([]);
});

test("a transaction that conflicts with another is tried again, a few times", async () => {
  const answering = (...failures: string[]) => {
    const send = async ({ constructor: { name } }: object) => {
      const Code = name === "TransactWriteCommand" ? failures.shift() : undefined;
      if (Code === undefined) return {};
      const error = Object.assign(new Error(Code), { CancellationReasons: [{ Code }] });
      throw Object.assign(error, { name: "TransactionCanceledException" });
    };
    return dynamoTenants({ send } as never, "once"); // safe: the store only sends
  };
  const conflict = "TransactionConflict";
  const tenant = of("f", "UTC", 1);
  expect(await answering(conflict, conflict).add(tenant)).toBe(true);
  await expect(answering(...Array.from({ length: 5 }, () => conflict)).add(tenant)).rejects.toThrow(
    conflict,
  );
  await expect(answering("ThrottlingError").add(tenant)).rejects.toThrow("ThrottlingError");
});
