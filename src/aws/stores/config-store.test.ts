import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { withLostAnswer } from "../../../test/support/lost-answers.ts";
import { configTable } from "../../app/handlers/table.ts";
import type { Database } from "../../base/types/database.ts";
import { type EmbeddedStack, startEmbeddedStack } from "../../embedded/stack/index.ts";
import type { WriteAction } from "../../parts/config/operate/operator-session.ts";
import { type ConfigRow, type RowAddress, userPartition } from "../../parts/config/read/rows.ts";
import { openDatabase } from "../clients/dynamodb.ts";
import { ensureTables } from "../tables/tables.ts";
import { dynamoConfigStore } from "./config-store.ts";

let stack: EmbeddedStack;
let database: Database;

beforeAll(async () => {
  stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  database = await openDatabase({
    endpoint: stack.endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "x", secretAccessKey: "x" },
  });
  await ensureTables(database, [{ ...configTable, tableName: "rows" }], "create");
});
afterAll(async () => {
  database.destroy();
  await stack.close();
});

const at = (tenant: string, key = "files:config:limit"): RowAddress => ({
  partition: `config#tenant#${tenant}`,
  key,
});
const write = (
  address: RowAddress,
  row: ConfigRow,
  seenVersion?: number,
  action: WriteAction = "set",
) =>
  dynamoConfigStore(database, "rows", { wait: async () => {} }).write({
    address,
    row,
    entry: { ...row, action },
    seen: seenVersion === undefined ? undefined : { value: undefined, version: seenVersion },
  });

test("writes a row and its history entry together", async () => {
  const store = dynamoConfigStore(database, "rows");
  const address = at("together");

  expect(await write(address, { value: 5, version: 1, updatedBy: "ann" })).toBe(true);
  expect(await store.read([address])).toMatchObject([{ value: 5, version: 1, updatedBy: "ann" }]);
  expect(await store.history(address, { limit: 10 })).toMatchObject([
    { value: 5, version: 1, action: "set" },
  ]);
});

test("a write based on another version changes neither the row nor its history", async () => {
  const store = dynamoConfigStore(database, "rows");
  const address = at("stale");
  await write(address, { value: 1, version: 1 });
  await write(address, { value: 2, version: 2 }, 1);

  expect(await write(address, { value: 9, version: 2 }, 1)).toBe(false);
  expect(await write(address, { value: 9, version: 1 })).toBe(false);
  expect(await store.read([address])).toMatchObject([{ value: 2, version: 2 }]);
  expect((await store.history(address, { limit: 10 })).map(({ value }) => value)).toEqual([2, 1]);
});

test("returns a bounded history, newest first even beyond nine versions, from the requested version", async () => {
  const store = dynamoConfigStore(database, "rows");
  const address = at("many");
  for (let version = 1; version <= 12; version++) {
    await write(address, { value: version, version }, version === 1 ? undefined : version - 1);
  }
  const versions = async (range: { before?: number; limit: number }) =>
    (await store.history(address, range)).map(({ version }) => version);

  expect(await versions({ limit: 4 })).toEqual([12, 11, 10, 9]);
  expect(await versions({ limit: 2, before: 10 })).toEqual([9, 8]);
  expect(await versions({ limit: 2, before: 1 })).toEqual([]);
  expect(await versions({ limit: 2, before: 0 })).toEqual([]);
});

test("returns a complete page of the largest values, even if it takes several responses", async () => {
  const store = dynamoConfigStore(database, "rows");
  const address = at("large");
  const value = "x".repeat(16_384);
  for (let version = 1; version <= 70; version++) {
    await write(address, { value, version }, version === 1 ? undefined : version - 1);
  }

  const entries = await store.history(address, { limit: 69 });
  expect(entries.map(({ version }) => version)).toEqual(
    Array.from({ length: 69 }, (_, index) => 70 - index),
  );
});

test("has room for the history of the longest partition", async () => {
  const store = dynamoConfigStore(database, "rows");
  const address = {
    partition: userPartition("t".repeat(1_000), "ü".repeat(500)),
    key: "k".repeat(256),
  };

  expect(await write(address, { value: 1, version: 1 })).toBe(true);
  expect(await store.history(address, { limit: 1 })).toMatchObject([{ value: 1 }]);
});

test("keeps the histories of keys and tenants with common prefixes apart, and never reads them as rows", async () => {
  const store = dynamoConfigStore(database, "rows");
  const addresses = [
    at("a"),
    at("a", "files:config:limit-2"),
    at("ab"),
    at("a", "files:config:limi"),
  ];
  for (const [value, address] of addresses.entries()) await write(address, { value, version: 1 });

  for (const [value, address] of addresses.entries()) {
    expect((await store.history(address, { limit: 10 })).map((entry) => entry.value)).toEqual([
      value,
    ]);
  }
  expect(
    await store.read([{ partition: "history#config#tenant#a", key: "files:config:limit" }]),
  ).toEqual([undefined]);
});

test("a tombstone keeps its version and has no value", async () => {
  const store = dynamoConfigStore(database, "rows");
  const address = at("gone");
  await write(address, { value: undefined, version: 1, deleted: true }, undefined, "reset");

  const [row] = await store.read([address]);
  expect(row).toMatchObject({ version: 1, deleted: true });
  expect(row).not.toHaveProperty("value");
});

test.each([
  ["TransactionConflict", [{ Code: "None" }, { Code: "TransactionConflict" }], true],
  ["ThrottlingError", [{ Code: "ThrottlingError" }], false],
  ["no reasons", undefined, false],
  ["reasons that are none", "TransactionConflict", false],
])(
  "classifies a transaction cancelled by %s as a conflict or an error",
  async (_case, reasons, isConflict) => {
    const cancelled = Object.assign(new Error("cancelled"), {
      name: "TransactionCanceledException",
      ...(reasons === undefined ? {} : { CancellationReasons: reasons }),
    });
    const send = vi.fn(() => Promise.reject(cancelled));
    const writing = dynamoConfigStore({ send } as never, "rows").write({
      address: at("x"),
      row: { value: 1, version: 1 },
      entry: { value: 1, version: 1, action: "set" },
      seen: undefined,
    });

    if (isConflict) await expect(writing).resolves.toBe(false);
    else await expect(writing).rejects.toBe(cancelled);
  },
);

test("treats a response without items as an empty history, and passes on other errors", async () => {
  const silent = dynamoConfigStore({ send: async () => ({}) } as never, "rows");
  const broken = dynamoConfigStore({ send: () => Promise.reject("down") } as never, "rows");
  const row = { value: 1, version: 1 };

  expect(await silent.history(at("x"), { limit: 1 })).toEqual([]);
  await expect(
    broken.write({ address: at("x"), row, entry: { ...row, action: "set" }, seen: undefined }),
  ).rejects.toBe("down");
});

test("a value that is sealed again counts as such if the SDK repeats the call because the answer was lost", async () => {
  const store = dynamoConfigStore(database, "rows");
  const address = at("sealed", "files:config:secret");
  const sealed = { sealed: 1, key: "k1", data: new Uint8Array(40) } as const;
  await write(address, { value: sealed, version: 1 });
  const again = { ...sealed, key: "k2", data: new Uint8Array(41) };
  const reseal = () => store.reseal({ address, version: 1, value: sealed }, again);
  expect(await withLostAnswer(database, "UpdateItem", reseal)).toBe(true);
  const other = { ...again, data: new Uint8Array(42) };
  expect(await store.reseal({ address, version: 1, value: sealed }, other)).toBe(false);
  expect(await store.read([address])).toMatchObject([{ value: again }]);
});
