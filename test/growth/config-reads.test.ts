// How the first read of a feature, and each refresh, grow with the number of its declared keys.
import { marshall } from "@aws-sdk/util-dynamodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { configTable } from "../../src/app/handlers/table.ts";
import { dynamoConfigRows } from "../../src/aws/stores/config-rows.ts";
import { tableOf } from "../../src/aws/stores/table.ts";
import { ensureTables } from "../../src/aws/tables/tables.ts";
import { type EmbeddedStack, startEmbeddedStack } from "../../src/embedded/stack/index.ts";
import { createUserConfig } from "../../src/index.ts";
import { createCachedRows, groupKeys } from "../../src/parts/config/cache/cached-rows.ts";
import type { RegisteredConfigKey } from "../../src/parts/config/declare/key.ts";
import { systemPartition } from "../../src/parts/config/read/rows.ts";
import { countedDatabase } from "./counted-database.ts";

let stack: EmbeddedStack;
let store: ReturnType<typeof countedDatabase>;

beforeAll(async () => {
  stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  store = countedDatabase(stack.endpoint);
  await ensureTables(store.database, [{ ...configTable, tableName: "rows" }], "create");
});
afterAll(async () => {
  store.database.destroy();
  await stack.close();
});

const owner = { tenantId: "acme", userId: "ann" };

/** Reads a key of a feature that has `count` keys of users, again after a minute, and counts both. */
async function readsOf(count: number) {
  let nowMs = 1_000_000;
  const { definition } = createUserConfig("number", { default: 1 });
  const ids = Array.from({ length: count }, (_, index) => `many:config:key-${index}`);
  const registered = ids.map(
    (id): RegisteredConfigKey => ({ id, feature: "many", name: id, definition }),
  );
  const rows = createCachedRows({
    reader: dynamoConfigRows(store.database, "rows"),
    keyGroups: groupKeys(registered),
    clock: { now: () => nowMs },
    ttlMs: 5_000,
    maxStaleMs: 5_000,
    maxTenants: 10,
  });
  const read = async () => rows.view(owner, () => {}).rowsOf("many:config:key-0", "user");
  const first = await store.counted(read);
  nowMs += 60_000;
  return { first, refresh: await store.counted(read) };
}

test.each([10, 1_000])(
  "a feature of %i keys is read by a call of half a unit per level",
  async (count) => {
    const ofThreeLevels = { calls: { Query: 3 }, units: 1.5 };

    expect(await readsOf(count)).toEqual({ first: ofThreeLevels, refresh: ofThreeLevels });
  },
);

test("one key of all levels takes one call", async () => {
  const oneCall = { calls: { BatchGetItem: 1 }, units: 1.5 };

  expect(await readsOf(1)).toEqual({ first: oneCall, refresh: oneCall });
});

test("rows of keys that nobody declares cost no more than the declared ones", async () => {
  const { put } = tableOf(store.database, "rows");
  for (let n = 0; n < 200; n += 1)
    await put(marshall({ pk: systemPartition(), sk: `many:config:key-0-${n}`, value: n }));
  const { first } = await readsOf(10);

  expect(first).toEqual({ calls: { Query: 3, BatchGetItem: 1 }, units: expect.any(Number) });
  expect(first.units).toBeLessThanOrEqual(0.5 * (3 + 10));
});
