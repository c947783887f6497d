import { expect, test } from "vitest";
import { defineFeature } from "../features/feature.ts";
import { createRegistry } from "../registry/registry.ts";
import { buildServer } from "../server/server.ts";

const ctx = { user: { tenantId: "a/b" } };
const indexes = { byOwner: { partitionKey: "owner" } };

const { files, notes, turned } = defineFeature("shelf", (r) => ({
  files: r.table("files", { partitionKey: "pk", sortKey: "sk", tenant: true, indexes }),
  notes: r.table("notes", { partitionKey: "id", tenant: true }),
  turned: r.table("turned", {
    partitionKey: "pk",
    sortKey: "sk",
    tenant: true,
    indexes: { bySort: { partitionKey: "sk", sortKey: "pk" } },
  }),
}));

test("a table with tenants builds the keys of the caller's rows", () => {
  expect(files.key(ctx, "files", "7")).toEqual({ pk: "a=2fb/files", sk: "7" });
  expect(files.key(ctx, "files")).toEqual({ pk: "a=2fb/files" });
  expect(notes.key(ctx, "")).toEqual({ id: "a=2fb/" });
  expect(files.value(ctx, "ann")).toBe("a=2fb/ann");
  expect(files.index("byOwner")).toBe("byOwner");
});

test("a sort key that is an index's partition key starts with the tenant too", () => {
  expect(turned.key(ctx, "files", "7")).toEqual({ pk: "a=2fb/files", sk: "a=2fb/7" });
});

test.each<[string, () => unknown]>([
  ['table "files": key: undefined is not a string', () => files.key(ctx, undefined as never)],
  ['table "files": key: null is not a string', () => files.key(ctx, "files", null as never)],
  ['table "files": value: 7 is not a string', () => files.value(ctx, 7 as never)],
  ['table "notes": key: the table has no sort key', () => notes.key(ctx, "a", "b")],
  [
    'table "files": key: the run has no tenant',
    () => files.key({ user: { tenantId: undefined } }, "files"),
  ],
  [
    'table "files": value: the run has no tenant',
    () => files.value({ user: { tenantId: "" } }, "ann"),
  ],
  [
    'table "files": key: the key has 2049 bytes with its tenant, and DynamoDB takes 2048',
    () => files.key(ctx, `${"ä".repeat(1_021)}a`),
  ],
  [
    'table "files": key: the key has 1025 bytes with its tenant, and DynamoDB takes 1024',
    () => files.key(ctx, "a", "b".repeat(1_025)),
  ],
])("%s", (message, make) => {
  expect(make).toThrow(message);
});

test("accepts keys up to DynamoDB's maximum length", () => {
  expect(files.key(ctx, "a".repeat(2_042), "b".repeat(1_024))).toBeDefined();
});

test("a table with `tenant: false` has no tenants and builds no keys", () => {
  const feature = defineFeature("plain", (r) => ({
    plain: r.table("plain", { partitionKey: "pk", tenant: false }),
  }));
  expect(feature.plain).not.toHaveProperty("key");
  expect(createRegistry([feature]).tables.get("plain")).not.toHaveProperty("tenant");
});

test("`tenant` must be true or false", () => {
  const feature = defineFeature(
    "odd",
    (r) => void r.table("odd", { partitionKey: "pk", tenant: "yes" as never }),
  );
  expect(() => buildServer({ features: [feature] })).toThrow('`tenant` is "yes"');
});

test("a table has no physical name outside a request", () => {
  expect(() => files.name).toThrow(
    'table "files": its physical name is known only while a handler runs',
  );
});
