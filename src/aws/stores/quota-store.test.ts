import { afterAll, beforeAll, expect, test } from "vitest";
import { startEmbeddedStack } from "../../embedded/stack/index.ts";
import type { QuotaRow, UsageWrite } from "../../parts/limits/quota-change.ts";
import { openDatabase } from "../clients/dynamodb.ts";
import { ensureTables } from "../tables/tables.ts";
import { dynamoQuotas } from "./quota-store.ts";
import { tableOf, transact } from "./table.ts";

let stack: Awaited<ReturnType<typeof startEmbeddedStack>>;
let database: Awaited<ReturnType<typeof openDatabase>>;
const table = { name: "once", tableName: "once", partitionKey: "pk", sortKey: "sk" };

beforeAll(async () => {
  stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const { endpoint } = stack;
  database = await openDatabase({ endpoint, region: "us-east-1", credentials });
  await ensureTables(database, [{ ...table, indexes: [] }], "create");
});
afterAll(async () => {
  database.destroy();
  await stack.close();
});

const rowOf = (tenantId: string, endsAtMs?: number): QuotaRow => ({
  tenantId,
  quota: "files.storage",
  period: { id: endsAtMs === undefined ? "forever" : "2026-11", endsAtMs },
});
const write = async (row: QuotaRow, change: UsageWrite) => {
  const item = dynamoQuotas(database, "once").item(row, change);
  return (await transact(database, [item as never])) === undefined; // safe: an item of a transaction
};

test("a write happens if the usage fits its condition; a missing row counts as 0", async () => {
  const quotas = dynamoQuotas(database, "once");
  const row = rowOf("a b");
  const add = (number: number, condition: UsageWrite["condition"]) =>
    write(row, { kind: "add", number, condition: condition ?? { atMost: 0 } });
  expect(await quotas.read(row)).toBeUndefined();
  expect(await add(-1, { atLeast: 1 })).toBe(false);
  expect(await add(5, { atMost: -1 })).toBe(false);
  expect(await write(row, { kind: "set", number: 0, condition: { exactly: 4 } })).toBe(false);
  expect(await add(5, { atMost: 0 })).toBe(true);
  expect(await add(5, { atMost: 4 })).toBe(false);
  expect(await add(2, { atMost: 5 })).toBe(true);
  expect(await add(-8, { atLeast: 8 })).toBe(false);
  expect(await add(-3, { atLeast: 3 })).toBe(true);
  expect(await quotas.read(row)).toBe(4);
  const empty: UsageWrite = { kind: "set", number: 0, condition: { exactly: undefined } };
  expect(await write(row, empty)).toBe(false);
  expect(await write(row, { ...empty, condition: { exactly: 4 } })).toBe(true);
  expect(await write(rowOf("new"), empty)).toBe(true);
  expect(await write(row, { kind: "set", number: 40 })).toBe(true);
  expect(await quotas.read(row)).toBe(40);
});

test("a row has its tenant, and expires a week after its period if that ends", async () => {
  const quotas = dynamoQuotas(database, "once");
  const endsAtMs = Date.UTC(2100, 0, 1);
  await write(rowOf("globex", endsAtMs), { kind: "set", number: 3 });
  await write(rowOf("globex"), { kind: "set", number: 5 });
  const own = [];
  for await (const one of quotas.list("globex")) own.push(one);
  const usage = { tenantId: "globex", quota: "files.storage" };
  expect(own).toEqual([
    { ...usage, period: "2026-11", used: 3 },
    { ...usage, period: "forever", used: 5 },
  ]);
  const { get } = tableOf(database, "once");
  expect(await get({ pk: "quota#globex", sk: "files.storage#2026-11" })).toEqual({
    pk: "quota#globex",
    sk: "files.storage#2026-11",
    tenantId: "globex",
    used: 3,
    expiration: endsAtMs / 1_000 + 7 * 86_400,
  });
  expect(await get({ pk: "quota#globex", sk: "files.storage#forever" })).not.toHaveProperty(
    "expiration",
  );
  const all = [];
  for await (const one of quotas.list(undefined)) all.push(one.tenantId);
  expect(all).toEqual(expect.arrayContaining(["a b", "globex", "globex"]));
});
