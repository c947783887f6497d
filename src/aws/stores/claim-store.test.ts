import fc from "fast-check";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { buildServer } from "../../app/server/server.ts";
import type { Database } from "../../base/types/database.ts";
import {
  type ClaimRecord,
  claimKey,
  completedClaim,
  defaultRetentionMs,
  judge,
  leaseMs,
  skewMs,
  takenClaim,
} from "../../parts/once/claim.ts";
import type { ClaimStore } from "../../parts/once/claim-store.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { openDatabase } from "../clients/dynamodb.ts";
import { dynamoClaimStore } from "./claim-store.ts";

let app: TestApp;
let tableName: string;
let database: Database;
let store: ClaimStore;
// In the future, so that time to live leaves the claims alone.
const nowMs = Date.now() + 3_600_000;
let keys = 0;
const newKey = () => claimKey(["claims", String(++keys)], "r1");

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
  store = dynamoClaimStore(database, tableName);
});
afterAll(async () => {
  database.destroy();
  await app.close();
});

test("takes a free claim, and shows it to later takers", async () => {
  const key = newKey();
  const claim = takenClaim("ann", nowMs, { fingerprint: "f" });
  expect(await store.take(key, claim, nowMs)).toBeUndefined();
  expect(await store.take(key, takenClaim("bob", nowMs), nowMs)).toEqual(claim);
  expect(await store.read(key)).toEqual(claim);
  expect(await store.read(newKey())).toBeUndefined();
});

test("the store's conditions match judge for any record, owner and clock", async () => {
  const times = fc.constantFrom(
    -1_000,
    0,
    leaseMs,
    leaseMs + skewMs,
    leaseMs + skewMs + 1,
    defaultRetentionMs - 1_000,
    defaultRetentionMs,
    defaultRetentionMs + 1_000,
    2 * defaultRetentionMs,
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom("INPROGRESS", "COMPLETED", "none"),
      times,
      async (status, elapsedMs) => {
        const key = newKey();
        if (status !== "none") await store.take(key, takenClaim("ann", nowMs), nowMs);
        if (status === "COMPLETED") await store.complete(key, completedClaim("ann", nowMs));
        const record = await store.read(key);
        const atMs = nowMs + elapsedMs;
        const inTheWay = await store.take(key, takenClaim("bob", atMs), atMs);
        expect(inTheWay === undefined).toBe(judge(record, "bob", atMs) === "free");
        if (inTheWay !== undefined) expect(inTheWay).toEqual(record);
      },
    ),
    { numRuns: 60 },
  );
});

test("only the owner renews, completes and releases a claim, and may complete it twice", async () => {
  const key = newKey();
  await store.take(key, takenClaim("ann", nowMs), nowMs);
  expect(await store.renew(key, "bob", 1, 1)).toBe(false);
  expect(await store.complete(key, completedClaim("bob", nowMs))).toBe(false);
  await store.release(key, "bob");
  expect(await store.renew(key, "ann", nowMs + 99, 1_800_000_000)).toBe(true);
  expect(await store.read(key)).toMatchObject({
    owner: "ann",
    leaseUntilMs: nowMs + 99,
    expiresAt: 1_800_000_000,
  });
  const done = completedClaim("ann", nowMs, {
    fingerprint: "f",
    result: { data: new Uint8Array([1, 2]) },
  });
  for (let n = 0; n < 2; n++) expect(await store.complete(key, done)).toBe(true);
  const stored = (await store.read(key)) as Extract<ClaimRecord, { status: "COMPLETED" }>;
  expect({ ...stored, result: { data: [...(stored.result?.data ?? [])] } }).toEqual({
    ...done,
    result: { data: [1, 2] },
  });
  expect(await store.renew(key, "ann", 1, 1)).toBe(false);
  await store.release(key, "ann");
  expect(await store.read(key)).toMatchObject({ status: "COMPLETED" });
  const open = newKey();
  await store.take(open, takenClaim("ann", nowMs), nowMs);
  await store.release(open, "ann");
  await store.release(open, "ann");
  expect(await store.read(open)).toBeUndefined();
});

test("an expired claim gives way only to its own generation", async () => {
  const key = newKey();
  const laterMs = nowMs + leaseMs + skewMs + 1;
  await store.take(key, takenClaim("ann", nowMs, { generation: "ann" }), nowMs);
  const found = await store.take(key, takenClaim("bob", laterMs, { generation: "bob" }), laterMs);
  expect(found).toMatchObject({ owner: "ann", generation: "ann" });
  expect(await store.take(key, takenClaim("bob", laterMs), laterMs)).toMatchObject({
    owner: "ann",
  });
  const inherited = takenClaim("bob", laterMs, { generation: "ann" });
  expect(await store.take(key, inherited, laterMs)).toBeUndefined();
  expect(await store.read(key)).toEqual(inherited);
});

test("a vacated claim expires immediately, keeps its generation, and has no owner", async () => {
  const key = newKey();
  await store.take(key, takenClaim("ann", nowMs, { generation: "ann", fingerprint: "f" }), nowMs);
  await store.vacate(key, "bob", 1_900_000_000);
  expect(await store.read(key)).toMatchObject({ owner: "ann" });
  await store.vacate(key, "ann", 1_900_000_000);
  const vacant = await store.read(key);
  expect(vacant).toMatchObject({
    status: "INPROGRESS",
    owner: "",
    generation: "ann",
    expiresAt: 1_900_000_000,
  });
  expect(judge(vacant, "bob", nowMs)).toBe("free");
  expect(await store.renew(key, "ann", nowMs, 1)).toBe(false);
  expect(
    await store.take(key, takenClaim("bob", nowMs, { generation: "ann" }), nowMs),
  ).toBeUndefined();
});

test("extends a completed claim, never shortens it, and only while it is the one that was read", async () => {
  const key = newKey();
  await store.take(key, takenClaim("ann", nowMs), nowMs);
  await store.extend(key, "ann", 1_900_000_000);
  expect(await store.read(key)).toMatchObject({
    status: "INPROGRESS",
    expiresAt: takenClaim("ann", nowMs).expiresAt,
  });
  await store.complete(key, completedClaim("ann", nowMs));
  for (const expiresAt of [1_900_000_000, 1_800_000_000]) await store.extend(key, "ann", expiresAt);
  await store.extend(key, "bob", 2_000_000_000);
  expect(await store.read(key)).toMatchObject({ status: "COMPLETED", expiresAt: 1_900_000_000 });
});

test("rejects a commit that does not complete its claim once another run holds the claim", async () => {
  const key = newKey();
  await store.take(key, takenClaim("ann", nowMs), nowMs);
  const put = (pk: string) => ({ Put: { TableName: tableName, Item: { pk, sk: "held" } } });
  const commit = (token: string, owner: string) =>
    store.commit({ items: [put(token)], token, completed: undefined, held: { key, owner } });
  expect(await commit("h1", "bob")).toMatchObject([
    { code: "None" },
    { code: "ConditionalCheckFailed" },
  ]);
  expect(await commit("h2", "ann")).toBeUndefined();
  expect(await store.read(key)).toMatchObject({ status: "INPROGRESS", owner: "ann" });
});

test("stores a large result in parts of its owner, in order", async () => {
  const key = newKey();
  const parts = Array.from({ length: 30 }, (_, n) => new Uint8Array([n]));
  await store.putParts(key, "ann", parts, 1_800_000_000);
  expect((await store.readParts(key, "ann", 30))?.map(([byte]) => byte)).toEqual(
    parts.map(([byte]) => byte),
  );
  expect(await store.readParts(key, "ann", 31)).toBeUndefined();
  expect(await store.readParts(key, "bob", 1)).toBeUndefined();
  await store.take(key, takenClaim("ann", nowMs), nowMs);
  await store.complete(key, completedClaim("ann", nowMs, { result: { parts: 30 } }));
  expect(await store.read(key)).toMatchObject({ result: { parts: 30 } });
});

test("commits items and completed claim together or not at all, with the reason", async () => {
  const key = newKey();
  await store.take(key, takenClaim("ann", nowMs), nowMs);
  const put = (pk: string) => ({
    Put: {
      TableName: tableName,
      Item: { pk, sk: "item" },
      ConditionExpression: "attribute_not_exists(pk)",
    },
  });
  const completed = (owner: string) => ({ key, claim: completedClaim(owner, nowMs) });
  expect(
    await store.commit({ items: [put("a")], token: "t1", completed: completed("bob") }),
  ).toMatchObject([{ code: "None" }, { code: "ConditionalCheckFailed" }]);
  expect(
    await store.commit({ items: [put("a")], token: "t2", completed: completed("ann") }),
  ).toBeUndefined();
  expect(await store.read(key)).toMatchObject({ status: "COMPLETED", owner: "ann" });
  expect(
    await store.commit({ items: [put("a")], token: "t3", completed: undefined }),
  ).toMatchObject([{ code: "ConditionalCheckFailed" }]);
  await expect(
    store.commit({
      items: [{ Put: { TableName: "nowhere", Item: {} } }],
      token: "t4",
      completed: undefined,
    }),
  ).rejects.toThrow();
});

/** A store whose one call fails as DynamoDB would. */
const failing = (name: string, more: object = {}) =>
  dynamoClaimStore(
    { send: () => Promise.reject(Object.assign(new Error(name), { name, ...more })) } as never,
    "once",
  );

test("reads the claim of a duplicate during its commit, and passes on errors of the store", async () => {
  const key = newKey();
  const send = vi.fn(async (_command: object) => ({
    Item: { status: { S: "INPROGRESS" }, owner: { S: "ann" } },
  }));
  send.mockRejectedValueOnce(
    Object.assign(new Error("busy"), { name: "TransactionConflictException" }),
  );
  expect(
    await dynamoClaimStore({ send } as never, "once").take(key, takenClaim("bob", nowMs), nowMs),
  ).toEqual({
    status: "INPROGRESS",
    owner: "ann",
    expiresAt: 0,
    leaseUntilMs: 0,
  });
  for (const name of ["ThrottlingException", "InternalServerError"]) {
    await expect(failing(name).take(key, takenClaim("bob", nowMs), nowMs)).rejects.toThrow(name);
    await expect(failing(name).renew(key, "bob", 1, 1)).rejects.toThrow(name);
    await expect(
      failing(name).commit({ items: [], token: "t", completed: undefined }),
    ).rejects.toThrow(name);
  }
  expect(
    await failing("TransactionCanceledException").commit({
      items: [],
      token: "t",
      completed: undefined,
    }),
  ).toEqual([]);
  const reasons = { CancellationReasons: [{}, { Code: "TransactionConflict", Message: "busy" }] };
  expect(
    await failing("TransactionCanceledException", reasons).commit({
      items: [],
      token: "t",
      completed: undefined,
    }),
  ).toEqual([
    { code: "None", message: "" },
    { code: "TransactionConflict", message: "busy" },
  ]);
});

test("reads the item if the store does not return it with the rejection", async () => {
  const key = newKey();
  const refused = Object.assign(new Error("refused"), { name: "ConditionalCheckFailedException" });
  const send = vi.fn(async (_command: object) => ({
    Item: { status: { S: "COMPLETED" }, owner: { S: "ann" }, expiration: { N: "9" } },
  }));
  send.mockRejectedValueOnce(refused);
  expect(
    await dynamoClaimStore({ send } as never, "once").take(key, takenClaim("bob", nowMs), nowMs),
  ).toEqual({
    status: "COMPLETED",
    owner: "ann",
    expiresAt: 9,
  });
});

test("treats an invalid item as a claim that expired long ago", async () => {
  const send = async () => ({ Item: {} });
  const record = await dynamoClaimStore({ send } as never, "once").read(newKey());
  expect(record).toEqual({ status: "INPROGRESS", owner: "", expiresAt: 0, leaseUntilMs: 0 });
  expect(judge(record, "ann", nowMs)).toBe("free");
});

test("a commit whose answer is lost is sent once, and is no refusal", async () => {
  const key = newKey();
  await store.take(key, takenClaim("ann", nowMs), nowMs);
  let sent = 0;
  database.middlewareStack.add(
    (next) => async (given) => {
      await next(given);
      sent += 1;
      throw new Error("socket hang up");
    },
    { step: "finalizeRequest", priority: "high", name: "lost" },
  );
  const completed = { key, claim: completedClaim("ann", nowMs) };
  const transaction = { items: [], completed, held: undefined, token: crypto.randomUUID() };
  const committed = store.commit({ ...transaction, tenantId: undefined });
  await expect(committed).rejects.toMatchObject({ name: "Error", message: "socket hang up" });
  database.middlewareStack.remove("lost");
  expect(sent).toBe(1);
  expect(await store.read(key)).toMatchObject({ status: "COMPLETED" });
});

test("a commit whose credentials cannot be loaded is no refusal", async () => {
  database.middlewareStack.add(() => () => Promise.reject(new Error("getaddrinfo EAI_AGAIN sts")), {
    ...{ step: "serialize", priority: "high", name: "no credentials" },
  });
  const transaction = { items: [], completed: undefined, held: undefined, token: "t" };
  const committed = store.commit({ ...transaction, tenantId: undefined });
  await expect(committed).rejects.toMatchObject({
    name: "Error",
    message: "getaddrinfo EAI_AGAIN sts",
  });
  database.middlewareStack.remove("no credentials");
});
