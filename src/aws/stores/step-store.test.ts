import { afterAll, beforeAll, expect, test } from "vitest";
import { buildServer } from "../../app/server/server.ts";
import type { Database } from "../../base/types/database.ts";
import { claimKey, takenClaim } from "../../parts/once/claim.ts";
import {
  doneStep,
  type IfUnknown,
  type StepFacts,
  startedStep,
  stepPlace,
  undoneStep,
} from "../../parts/once/step.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { openDatabase } from "../clients/dynamodb.ts";
import { dynamoClaimStore } from "./claim-store.ts";
import { dynamoSteps } from "./step-store.ts";

// In the future, so that time to live leaves the steps alone.
const nowMs = (Math.floor(Date.now() / 1000) + 3_600) * 1000;
const keepMs = 60_000;
let app: TestApp;
let tableName: string;
let database: Database;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [] })); // makes the table
  const { AWS_ACCESS_KEY_ID = "", AWS_SECRET_ACCESS_KEY = "" } = app.env;
  tableName = app.env["KEELSON_TABLE_ONCE"] ?? "keelson-once";
  const credentials = { accessKeyId: AWS_ACCESS_KEY_ID, secretAccessKey: AWS_SECRET_ACCESS_KEY };
  database = await openDatabase({
    endpoint: app.env["AWS_ENDPOINT_URL"],
    region: app.env["AWS_REGION"],
    credentials,
  });
});
afterAll(async () => {
  database.destroy();
  await app.close();
});

let runs = 0;
/** One that no other run of this test has, where tables outlive it. */
const keyOf = () => `${tableName}-${runs}`;
const facts = (claim: StepFacts["claim"]): StepFacts => ({
  ...{
    name: "charge",
    handler: "a.b.c",
    requestId: "r1",
    startedAt: "2026-11-22T12:00:00.000Z",
    isSealed: false,
    keepMs,
  },
  claim,
});

/** A claim that `me` holds, and its step. */
async function claimed(tenantId?: string) {
  const key = claimKey([tableName], `r${++runs}`, tenantId);
  await dynamoClaimStore(database, tableName).take(key, takenClaim("me", nowMs), nowMs);
  const steps = dynamoSteps(database, tableName);
  const place = stepPlace(keyOf(), tenantId);
  const start = (owner: string, ifUnknown: IfUnknown = "refuse", atMs = nowMs) =>
    steps.start(place, startedStep(owner, atMs, keepMs), facts(key), ifUnknown, atMs);
  const take = (owner: string) =>
    dynamoClaimStore(database, tableName).adopt(key, takenClaim(owner, nowMs), "me");
  return { key, steps, place, start, take };
}

test("the holder of the claim begins a step if its record allows it", async () => {
  const { steps, place, start, take } = await claimed();
  expect(await steps.read(place)).toBeUndefined();
  expect(await start("other")).toBe("fenced");
  expect(await steps.read(place)).toBeUndefined();
  expect([await start("me"), await start("me")]).toEqual(["started", "started"]);
  expect(await steps.read(place)).toEqual(startedStep("me", nowMs, keepMs));

  // Another run has taken over.
  expect(await take("other")).toBe(true);
  expect(await start("me")).toBe("fenced");
  expect(await start("other")).toBe("taken");
  expect(await start("other", "refuse", nowMs + keepMs - 1)).toBe("taken");
  expect(await start("other", "refuse", nowMs + keepMs)).toBe("started");
});

test("begins an unknown step again with retry, but not one that is done", async () => {
  const { steps, place, start, take } = await claimed();
  await start("me");
  await take("other");
  expect(await start("other", "retry")).toBe("started");
  expect(
    await steps.end(place, doneStep("me", nowMs, keepMs, { data: Buffer.from("a") }), "me"),
  ).toBe(false);
  const done = doneStep("other", nowMs, keepMs, {
    data: Uint8Array.of(1, 2),
    parts: 3,
    unkept: "why",
  });
  expect([await steps.end(place, done, "other"), await steps.end(place, done, "other")]).toEqual([
    true,
    true,
  ]);
  expect(await steps.read(place)).toEqual(done);
  expect([await start("other"), await start("other", "retry")]).toEqual(["taken", "taken"]);
  expect(await steps.end(place, undoneStep("other", nowMs, keepMs), "other")).toBe(false);
});

test("begins a step again that was not done, and returns all that is known of its row", async () => {
  const { key, steps, place, start, take } = await claimed("acme");
  await start("me");
  expect(await steps.end(place, undoneStep("me", nowMs, keepMs), "me")).toBe(true);
  const record = undoneStep("me", nowMs, keepMs);
  expect(await steps.find(keyOf())).toEqual({
    ...facts(key),
    key: keyOf(),
    tenantId: "acme",
    record,
  });
  expect(await steps.find("other")).toBeUndefined();
  const listed: string[] = [];
  for await (const step of steps.list()) listed.push(step.key);
  expect(listed).toContain(keyOf());
  await take("other");
  expect(await start("other")).toBe("started");
});

test("reports a step in progress elsewhere as a conflict, and throws other failures", async () => {
  const answering = (error: object) =>
    dynamoSteps(
      { send: () => Promise.reject(Object.assign(new Error("no"), error)) } as unknown as Database,
      "once",
    ); // nothing else is asked of it
  const place = stepPlace("k", undefined);
  const start = (error: object) =>
    answering(error).start(
      place,
      startedStep("me", nowMs, keepMs),
      facts(claimKey(["a"], "r")),
      "refuse",
      nowMs,
    );
  const cancelled = (...codes: string[]) => ({
    name: "TransactionCanceledException",
    CancellationReasons: codes.map((Code) => ({ Code })),
  });
  expect(await start(cancelled("None", "TransactionConflict"))).toBe("conflict");
  expect(await start(cancelled("TransactionConflict", "None"))).toBe("conflict");
  expect(await start(cancelled("None", "ConditionalCheckFailed"))).toBe("taken");
  expect(await start(cancelled("ConditionalCheckFailed", "ConditionalCheckFailed"))).toBe("fenced");
  expect(await start({ name: "TransactionCanceledException" })).toBe("conflict");
  await expect(start({ name: "ValidationException" })).rejects.toThrow("no");
  const end = answering({ name: "ThrottlingException" }).end(
    place,
    undoneStep("me", nowMs, keepMs),
    "me",
  );
  await expect(end).rejects.toThrow("no");
});
