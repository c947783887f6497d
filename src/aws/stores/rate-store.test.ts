import { afterAll, beforeAll, expect, test } from "vitest";
import { buildServer } from "../../app/server/server.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { openDatabase } from "../clients/dynamodb.ts";
import { dynamoRates } from "./rate-store.ts";

let app: TestApp;
let database: Awaited<ReturnType<typeof openDatabase>>;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [] }));
  database = await openDatabase({
    endpoint: app.env["AWS_ENDPOINT_URL"],
    region: "us-east-1",
    credentials: { accessKeyId: "a", secretAccessKey: "s" },
  });
});
afterAll(async () => {
  database.destroy();
  await app.close();
});

const startMs = Math.floor(Date.now() / 3_600_000) * 3_600_000;
const limit = { id: "files requests", window: "hour", key: "files:config:requests" } as const;
const acme = { limit, text: "tenant acme", tenantId: "acme", startMs };
const anyone = { limit: { id: "server all-hour", window: "hour" }, text: "all", startMs } as const;
const all = async (rows: AsyncIterable<unknown>) => {
  const found: unknown[] = [];
  for await (const row of rows) found.push(row);
  return found;
};

test("takes tokens of a row until it is empty, and lists and removes rows", async () => {
  const store = dynamoRates(database, "keelson-once");
  expect(await store.take(acme, 4, 10)).toBe(0);
  expect(await store.take(acme, 8, 10)).toBe(4);
  expect(await store.take(acme, 1, 10)).toBeUndefined();
  expect(await store.take(acme, 1, 20)).toBe(12);
  expect(await store.take({ ...acme, startMs: startMs + 3_600_000 }, 1, 10)).toBe(0);
  expect(await store.take(anyone, 1, 10)).toBe(0);

  expect(await store.read(acme)).toBe(13);
  expect(await store.read({ ...acme, text: "tenant umbrella" })).toBe(0);

  const own = await all(store.list("acme"));
  expect(own).toHaveLength(2);
  expect(own).toContainEqual({
    ...acme,
    taken: 13,
    number: 20,
    rowKey: { pk: expect.stringMatching(/^rate:/), sk: new Date(startMs).toISOString() },
  });
  expect(await all(store.list())).toHaveLength(3);
  for await (const row of store.list("acme")) await store.remove(row);
  expect(await all(store.list())).toMatchObject([{ text: "all", tenantId: undefined }]);
});
