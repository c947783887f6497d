import { ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { defineFeature } from "../../../app/features/feature.ts";
import { buildServer } from "../../../app/server/server.ts";
import { openDatabase } from "../../../aws/clients/dynamodb.ts";
import { type EmbeddedStack, startEmbeddedStack } from "../../../embedded/stack/index.ts";
import { startTestApp } from "./test-app.ts";

let stack: EmbeddedStack;
beforeAll(async () => {
  stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
});
afterAll(() => stack.close());
afterEach(() => {
  vi.unstubAllEnvs();
});

test("with a named emulator, each app has its own tables there, and deletes them when it closes", async () => {
  vi.stubEnv("KEELSON_TEST_ENDPOINT", stack.endpoint);
  const orders = defineFeature("orders", (r) => {
    r.table("order-lines", { partitionKey: "pk", tenant: false });
  });
  const server = buildServer({ features: [orders] });
  const apps = [await startTestApp(server), await startTestApp(server)];
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const database = await openDatabase({
    endpoint: stack.endpoint,
    region: "us-east-1",
    credentials,
  });
  const namesOf = async () => (await database.send(new ListTablesCommand())).TableNames ?? [];
  const names = apps.map(({ env }) => env["KEELSON_TABLE_ORDER_LINES"]);
  expect(new Set(names).size).toBe(2);
  expect(await namesOf()).toEqual(expect.arrayContaining(names));
  for (const app of apps) await app.close();
  expect(await namesOf()).toEqual([]);
  database.destroy();
});
