import { afterAll, beforeAll, expect, test } from "vitest";
import { buildServer } from "../../app/server/server.ts";
import type { Database } from "../../base/types/database.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { openDatabase } from "../clients/dynamodb.ts";
import { dynamoLines } from "./line-store.ts";

let app: TestApp;
let tableName: string;
let database: Database;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [] })); // makes the table
  const { AWS_ACCESS_KEY_ID = "", AWS_SECRET_ACCESS_KEY = "" } = app.env;
  tableName = app.env["KEELSON_TABLE_ONCE"] ?? "keelson-once";
  database = await openDatabase({
    endpoint: app.env["AWS_ENDPOINT_URL"],
    region: app.env["AWS_REGION"],
    credentials: { accessKeyId: AWS_ACCESS_KEY_ID, secretAccessKey: AWS_SECRET_ACCESS_KEY },
  });
});
afterAll(async () => {
  database.destroy();
  await app.close();
});

const line = { first: 1, next: 2, firstBy: 1, turn: 1, dueMs: 5 };
const expiresAt = Math.floor(Date.now() / 1000) + 3_600;
const common = { line, expiresAt, tenantId: "acme" };

test("a line changes only if it is as it was read, and other items with it", async () => {
  const store = dynamoLines(database, tableName);
  const group = crypto.randomUUID();
  const Item = { pk: `line-test#${group}`, sk: "item", expiration: expiresAt };
  const items = [{ Put: { TableName: tableName, Item } }];
  expect(await store.read(group)).toBeUndefined();
  expect(await store.change({ ...common, group, read: undefined, items })).toBe(true);
  expect(await store.change({ ...common, group, read: undefined, items })).toBe(false);
  const read = await store.read(group);
  expect(read).toMatchObject({ ...line, version: 1, tenantId: "acme" });
  const next = { ...common, group, read, line: { ...line, first: 2 }, tenantId: undefined };
  expect(await store.change({ ...next, items: [] })).toBe(true);
  expect(await store.change({ ...next, items: [] })).toBe(false);
  expect(await store.change({ ...next, items })).toBe(false);
  const changed = await store.read(group);
  expect(changed).toMatchObject({ first: 2, version: 2 });
  expect(await store.change({ ...next, read: changed, items })).toBe(true);
});

test.each([
  ["TransactionConflict", false],
  ["ThrottlingError", undefined],
])("a transaction cancelled by %s", async (Code, answer) => {
  const cancelled = Object.assign(new Error("cancelled"), {
    name: "TransactionCanceledException",
    CancellationReasons: [{ Code: "None" }, { Code }],
  });
  // Safe cast: only the method that a transaction calls.
  const fails = { send: () => Promise.reject(cancelled) } as unknown as Database;
  const change = dynamoLines(fails, tableName).change({
    ...{ ...common, group: "g", read: undefined, items: [{}] },
  });
  if (answer === undefined) await expect(change).rejects.toBe(cancelled);
  else expect(await change).toBe(answer);
});
