import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer } from "../../app/server/server.ts";
import { type EqualJobStore, markKeptMs, mergeMs } from "../../parts/messages/equal-jobs.ts";
import type { ClaimKey } from "../../parts/once/claim.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { openDatabase } from "../clients/dynamodb.ts";
import { dynamoEqualJobs } from "./equal-job-store.ts";
import { tableOf } from "./table.ts";

const start = 4_000_000_000_000; // TTL deletes no row of the future

let app: TestApp;
let database: Awaited<ReturnType<typeof openDatabase>>;
let name: string;
let store: EqualJobStore;
let key: ClaimKey;
let tests = 0;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [defineFeature("none", () => undefined)] }));
  const { AWS_ENDPOINT_URL: endpoint, AWS_REGION: region = "" } = app.env;
  const credentials = { accessKeyId: "a", secretAccessKey: "s" };
  database = await openDatabase({ endpoint, region, credentials });
  name = app.env["KEELSON_TABLE_ONCE"] ?? "keelson-once";
  store = dynamoEqualJobs(database, name);
});
afterAll(async () => {
  database.destroy();
  await app.close();
});
beforeEach(() => {
  tests += 1;
  key = { partition: `equal-${tests}`, sort: "dedup:h", tenantId: "acme" };
});

const rowOf = () => tableOf(database, name).get({ pk: key.partition, sk: key.sort });
const job = (jobId: string, ms: number) => ({ jobId, enqueuedMs: start + ms });

test("marks the first of equal jobs, for its tenant and a day", async () => {
  expect(await store.mark(key, job("j1", 0))).toBeUndefined();
  expect(await rowOf()).toEqual({
    ...{ pk: key.partition, sk: key.sort, tenantId: "acme", jobId: "j1", enqueuedMs: start },
    expiration: (start + markKeptMs) / 1000,
  });
});

test("returns the mark of less than 5 minutes before, or of a later job", async () => {
  await store.mark(key, job("j1", 0));
  expect(await store.mark(key, job("j2", mergeMs - 1))).toEqual(job("j1", 0));
  expect(await store.mark(key, job("j0", -mergeMs))).toEqual(job("j1", 0));
});

test("marks the same job again, and another after 5 minutes", async () => {
  await store.mark(key, job("j1", 0));
  expect(await store.mark(key, job("j1", 0))).toBeUndefined();
  expect(await store.mark(key, job("j2", mergeMs))).toBeUndefined();
  expect(await rowOf()).toMatchObject(job("j2", mergeMs));
});

test("deletes the mark of a job, and of no other", async () => {
  await store.mark(key, job("j1", 0));
  await store.unmark(key, "j2");
  expect(await store.mark(key, job("j2", 1))).toEqual(job("j1", 0));
  await store.unmark(key, "j1");
  expect(await rowOf()).toBeUndefined();
  await store.unmark(key, "j1");
});

test("marks one of many equal jobs that are marked at the same time", async () => {
  const marks = await Promise.all(
    Array.from({ length: 10 }, (_, number) => store.mark(key, job(`j${number}`, number))),
  );
  const { jobId } = (await rowOf()) as { readonly jobId: string }; // safe: it was just written
  expect(marks.filter((mark) => mark === undefined)).toHaveLength(1);
  expect(new Set(marks.map((mark) => mark?.jobId ?? jobId))).toEqual(new Set([jobId]));
});

test("marks a job whose blocking mark was deleted before it could be read", async () => {
  await store.mark(key, job("j1", 0));
  const table = tableOf(database, name);
  const removing = dynamoEqualJobs(
    {
      ...database,
      send: async (command: { readonly constructor: { readonly name: string } }) => {
        if (command.constructor.name === "GetCommand")
          await table.remove({ pk: { S: key.partition }, sk: { S: key.sort } });
        return database.send(command as never);
      },
    } as never, // only `send` is called
    name,
  );
  expect(await removing.mark(key, job("j2", 1))).toBeUndefined();
  expect(await rowOf()).toMatchObject({ jobId: "j2" });
});
