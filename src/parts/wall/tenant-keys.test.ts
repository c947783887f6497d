import { expect, test } from "vitest";
import { tenantKey, tenantValue } from "./tenant-keys.ts";

const files = {
  name: "files",
  partitionKey: "pk",
  sortKey: "sk",
  indexes: [{ partitionKey: "owner" }],
};
/** Its sort key is the partition key of an index. */
const turned = { ...files, name: "turned", indexes: [{ partitionKey: "sk" }] };
const flat = { name: "flat", partitionKey: "id", sortKey: undefined, indexes: [] };

test("the partition key begins with the encoded tenant, the sort key does not", () => {
  expect(tenantKey(files, "acme", "1")).toEqual({ pk: "acme/1" });
  expect(tenantKey(files, "a b", "1", "x")).toEqual({ pk: "a=20b/1", sk: "x" });
  expect(tenantKey(flat, "acme", "")).toEqual({ id: "acme/" });
});

test("a sort key that leads an index begins with the tenant, too", () => {
  expect(tenantKey(turned, "acme", "1", "x")).toEqual({ pk: "acme/1", sk: "acme/x" });
  const both = { ...files, indexes: [...files.indexes, ...turned.indexes] };
  expect(tenantKey(both, "acme", "1", "x")).toEqual({ pk: "acme/1", sk: "acme/x" });
  const none = { ...files, indexes: [] };
  expect(tenantKey(none, "acme", "1", "x")).toEqual({ pk: "acme/1", sk: "x" });
});

test("a value of an index begins with the tenant", () => {
  expect(tenantValue(files, "acme", "ann")).toBe("acme/ann");
});

test.each([undefined, ""])("refuses a run without a tenant (%j)", (tenant) => {
  const problem = "the run has no tenant; only a tenant has rows here";
  expect(() => tenantKey(files, tenant, "1")).toThrow(
    new TypeError(`table "files": key: ${problem}`),
  );
  expect(() => tenantValue(files, tenant, "1")).toThrow(
    new TypeError(`table "files": value: ${problem}`),
  );
});

test("refuses a sort key for a table that has none", () => {
  expect(() => tenantKey(flat, "acme", "1", "x")).toThrow(
    new TypeError('table "flat": key: the table has no sort key'),
  );
});

test("refuses anything but text", () => {
  expect(() => tenantKey(files, "acme", 1)).toThrow(
    new TypeError('table "files": key: 1 is not a string'),
  );
  expect(() => tenantKey(files, "acme", "1", null)).toThrow(
    new TypeError('table "files": key: null is not a string'),
  );
  expect(() => tenantValue(files, "acme", undefined)).toThrow(
    new TypeError('table "files": value: undefined is not a string'),
  );
  expect(() => tenantValue(files, "acme", Promise.resolve("ann"))).toThrow(
    new TypeError('table "files": value: it is a promise; await it'),
  );
});

test("takes as many bytes as DynamoDB, which counts the tenant", () => {
  const room = 2_048 - "acme/".length;
  expect(tenantKey(files, "acme", "x".repeat(room))["pk"]).toHaveLength(2_048);
  expect(() => tenantKey(files, "acme", "x".repeat(room + 1))).toThrow(
    new RangeError(
      'table "files": key: the key has 2049 bytes with its tenant, and DynamoDB takes 2048',
    ),
  );
  expect(() => tenantValue(files, "acme", "é".repeat(room / 2 + 1))).toThrow(RangeError);
  expect(tenantKey(files, "acme", "1", "x".repeat(1_024))["sk"]).toHaveLength(1_024);
  expect(() => tenantKey(files, "acme", "1", "x".repeat(1_025))).toThrow(
    new RangeError(
      'table "files": key: the key has 1025 bytes with its tenant, and DynamoDB takes 1024',
    ),
  );
  expect(() => tenantKey(turned, "acme", "1", "x".repeat(1_020))).toThrow(RangeError);
});
