import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { withLostAnswer } from "../../../test/support/lost-answers.ts";
import { defineFeature } from "../../app/features/feature.ts";
import type { ScheduleStore } from "../../app/schedules/schedule-step.ts";
import { buildServer } from "../../app/server/server.ts";
import type { ClaimKey } from "../../parts/once/claim.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { openDatabase } from "../clients/dynamodb.ts";
import { dynamoSchedules } from "./schedule-store.ts";

let app: TestApp;
let database: Awaited<ReturnType<typeof openDatabase>>;
let store: ScheduleStore;
let key: ClaimKey;
let tests = 0;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [defineFeature("none", () => undefined)] }));
  const { AWS_ENDPOINT_URL: endpoint, AWS_REGION: region = "" } = app.env;
  database = await openDatabase({
    endpoint,
    region,
    credentials: { accessKeyId: "a", secretAccessKey: "s" },
  });
  store = dynamoSchedules(database, app.env["KEELSON_TABLE_ONCE"] ?? "keelson-once");
});
afterAll(async () => {
  database.destroy();
  await app.close();
});
beforeEach(async () => {
  tests += 1;
  key = { partition: `schedule-${tests}`, sort: "fires" };
  await store.add(key, 10);
});

test("records a schedule once", async () => {
  await store.add(key, 20);
  expect(await store.read(key)).toEqual({ lastMs: 10 });
  expect(await store.read({ ...key, sort: "another" })).toBeUndefined();
});

test("begins a fire once per attempt, and no other fire before it is done", async () => {
  expect(await store.begin(key, 20)).toEqual({ attempts: 1 });
  expect(await store.begin(key, 20)).toEqual({ attempts: 2 });
  expect(await store.begin(key, 30)).toBeUndefined();
  expect(await store.read(key)).toEqual({
    lastMs: 10,
    begun: { atMs: 20, attempts: 2, retryMs: 0 },
  });
});

test("notes the last page that an attempt has sent, unless there was another attempt since", async () => {
  await store.begin(key, 20);
  const sent = { atMs: 20, attempts: 1, tenantId: "acme" };
  expect(await store.advance(key, sent)).toBe(true);
  expect(await store.begin(key, 20)).toEqual({ attempts: 2, sent });
  expect(await store.advance(key, { ...sent, tenantId: "bob" })).toBe(false);
  expect(await store.begin(key, 20)).toEqual({ attempts: 3, sent });
  await store.giveUp(key, { atMs: 20, attempts: 3 });
  expect(await store.begin(key, 30)).toEqual({ attempts: 1 });
});

test("does not begin a fire that is done, nor an earlier one", async () => {
  expect(await store.begin(key, 10)).toBeUndefined();
  expect(await store.begin(key, 9)).toBeUndefined();
  expect(await store.begin({ ...key, sort: "another" }, 9)).toBeUndefined();
});

test("a failed attempt sets the time of the next, unless there was another attempt since", async () => {
  await store.begin(key, 20);
  await store.postpone(key, { atMs: 20, attempts: 1, retryMs: 25 });
  expect((await store.read(key))?.begun).toEqual({ atMs: 20, attempts: 1, retryMs: 25 });
  await store.begin(key, 20);
  await store.postpone(key, { atMs: 20, attempts: 1, retryMs: 99 });
  expect((await store.read(key))?.begun).toEqual({ atMs: 20, attempts: 2, retryMs: 25 });
});

test("a fire that is given up is over, unless there was another attempt since", async () => {
  await store.begin(key, 20);
  await store.begin(key, 20);
  expect(await store.giveUp(key, { atMs: 20, attempts: 1 })).toBe(false);
  expect(await store.giveUp(key, { atMs: 20, attempts: 2 })).toBe(true);
  expect(await store.read(key)).toEqual({ lastMs: 20 });
});

test("skips missed times, unless something was begun or done since the read", async () => {
  expect(await store.pass(key, 9, 20)).toBe(false);
  expect(await store.pass(key, 10, 20)).toBe(true);
  expect(await store.read(key)).toEqual({ lastMs: 20 });
  await store.begin(key, 30);
  expect(await store.pass(key, 20, 40)).toBe(false);
});

test("recognizes what another process has done, and nothing else", async () => {
  await store.begin(key, 20);
  await store.skip(key, 30);
  expect((await store.read(key))?.begun?.atMs).toBe(20);
  await store.skip(key, 20);
  expect(await store.read(key)).toEqual({ lastMs: 20 });
  await store.skip(key, 15);
  expect(await store.read(key)).toEqual({ lastMs: 20 });
});

test("a change counts once if the SDK repeats it because the answer was lost", async () => {
  const lost = <Result>(work: () => Promise<Result>) =>
    withLostAnswer(database, "UpdateItem", work);
  expect(await lost(() => store.begin(key, 20))).toEqual({ attempts: 1 });
  expect(await store.begin(key, 30)).toBeUndefined();
  const sent = { atMs: 20, attempts: 1, tenantId: "acme" };
  expect(await lost(() => store.advance(key, sent))).toBe(true);
  expect(await lost(() => store.begin(key, 20))).toEqual({ attempts: 2, sent });
  expect(await lost(() => store.giveUp(key, { atMs: 20, attempts: 2 }))).toBe(true);
  expect(await store.read(key)).toEqual({ lastMs: 20 });
  expect(await lost(() => store.pass(key, 20, 30))).toBe(true);
  expect(await store.read(key)).toEqual({ lastMs: 30 });
});

test("throws any other failure of the store", async () => {
  const broken = dynamoSchedules(database, "keelson-none");
  await expect(broken.begin(key, 20)).rejects.toThrow(/resource/i);
});
