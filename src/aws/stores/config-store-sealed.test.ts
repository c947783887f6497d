import { expect, test, vi } from "vitest";
import { dynamoConfigStore } from "./config-store.ts";

const value = { sealed: 1, key: "k1", data: new Uint8Array(40) } as const;
const row = {
  address: { partition: "config#tenant#acme", key: "files:config:secret" },
  version: 3,
  value,
};
const over = (send: () => Promise<unknown>) => dynamoConfigStore({ send } as never, "rows");

test("replaces a row only if it still has the version and the key that were read", async () => {
  const send = vi.fn(async (_command: { input: object }) => ({}));
  const rows = dynamoConfigStore({ send } as never, "rows");
  expect(await rows.reseal(row, { ...value, key: "k2" })).toBe(true);
  // A row that was put there by hand has none, which has to be so still.
  expect(await rows.reseal({ ...row, version: undefined }, { ...value, key: "k2" })).toBe(true);
  expect(send.mock.calls.map(([{ input }]) => input)).toMatchObject([
    {
      ConditionExpression: expect.stringMatching(
        /^\(\(#value\.#key = :key .* AND version = :version$/,
      ),
      ExpressionAttributeValues: { ":version": 3, ":key": "k1", ":data": value.data },
    },
    {
      ConditionExpression: expect.stringMatching(/ AND NOT attribute_type\(version, :number\)$/),
    },
  ]);
});

test.each([
  ["ConditionalCheckFailedException", true],
  ["TransactionConflictException", true],
  ["ThrottlingException", false],
])("classifies %s as a conflict: %s", async (name, isOvertaken) => {
  const error = Object.assign(new Error("refused"), { name });
  const resealing = over(() => Promise.reject(error)).reseal(row, value);
  if (isOvertaken) expect(await resealing).toBe(false);
  else await expect(resealing).rejects.toBe(error);
});

test("skips what only looks sealed, accepts a row without a valid version, and ends at an empty response", async () => {
  const Items = [
    { pk: "config#system", sk: "a", value, version: 1 },
    { pk: "config#system", sk: "b", value, version: "1" },
    { pk: "config#system", sk: "c", value: { sealed: 7 }, version: 1 },
  ];
  expect(
    (await over(async () => ({ Items, ScannedCount: 9 })).sealedRows(undefined)).rows,
  ).toMatchObject([
    { address: { key: "a" }, version: 1 },
    { address: { key: "b" }, version: undefined },
  ]);
  expect(await over(async () => ({})).sealedRows(undefined)).toEqual({ rows: [], scanned: 0 });
});

test.each([
  "",
  "%",
  "W10",
  Buffer.from("[1,2]").toString("base64url"),
  Buffer.from('["a"]').toString("base64url"),
])("rejects the cursor %j", async (cursor) => {
  await expect(over(async () => ({})).sealedRows(cursor)).rejects.toMatchObject({
    fields: [{ field: "from" }],
  });
});
