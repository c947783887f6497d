import { expect, test } from "vitest";
import { dynamoApiKeys } from "./api-key-store.ts";

const storeOf = (send: () => Promise<unknown>) => dynamoApiKeys({ send } as never, "keelson-once"); // safe: the store only sends

test("a key that has changed is not written, and any other refusal keeps its error", async () => {
  const cancelled = (code: string) =>
    Object.assign(new Error("cancelled"), {
      name: "TransactionCanceledException",
      CancellationReasons: [{ Code: code }],
    });
  const write = (code: string) => storeOf(() => Promise.reject(cancelled(code))).write([]);
  await expect(write("ConditionalCheckFailed")).rejects.toThrow("has changed since it was read");
  await expect(write("ThrottlingError")).rejects.toThrow("cancelled");
});

test("a page without keys is an empty list", async () => {
  expect(await storeOf(async () => ({})).list("acme")).toEqual([]);
});

test("a list with a key whose time was changed by hand names its row", async () => {
  const row = { pk: "api-keys#acme", sk: "key#key_1", id: "key_1", tenantId: "acme", createdMs: 1 };
  const list = (changed: object) =>
    storeOf(async () => ({ Items: [{ ...row, ...changed }] })).list("acme");
  expect(await list({ expiresMs: 5 })).toMatchObject([{ id: "key_1", createdMs: 1, expiresMs: 5 }]);
  for (const changed of [{ createdMs: undefined }, { expiresMs: "never" }, { lastUsedMs: null }])
    await expect(list(changed)).rejects.toThrow(
      'the row "api-keys#acme" "key#key_1" cannot be read',
    );
});

test.each([
  ["roles", undefined],
  ["roles", new Set(["admin"])],
  ["roles", ["a", ""]],
  ["tenantId", undefined],
  ["tenantId", 7],
  ["id", ""],
  ["endsMs", "never"],
  ["endsMs", null],
])("a row whose %s was changed by hand to %j does not identify a caller", async (name, value) => {
  const stored = { id: "key_1", tenantId: "acme", roles: ["reader"], endsMs: 5 };
  const find = (row: object) => storeOf(async () => ({ Item: row })).find("hash");
  expect(await find({ ...stored, pk: "p" })).toEqual(stored);
  await expect(find({ ...stored, [name]: value })).rejects.toThrow("is not in a form");
});
