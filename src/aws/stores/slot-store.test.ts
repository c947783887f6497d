import { afterAll, beforeAll, expect, test } from "vitest";
import { buildServer } from "../../app/server/server.ts";
import type { Database } from "../../base/types/database.ts";
import type { SlotHolder, SlotPlace } from "../../parts/limits/slot.ts";
import { claimKey, completedClaim, takenClaim } from "../../parts/once/claim.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { openDatabase } from "../clients/dynamodb.ts";
import { GetCommand } from "../clients/dynamodb-sdk.ts";
import { dynamoClaimStore } from "./claim-store.ts";
import { dynamoSlots, openSlots } from "./slot-store.ts";

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

// In the future, so that time to live leaves the rows alone.
const nowMs = (Math.floor(Date.now() / 1000) + 3_600) * 1000;
const expiresAt = nowMs / 1000;
const handler = `files.file.scan-${crypto.randomUUID()}`;
const ofTenant: SlotPlace = { handler, limit: "perTenant", tenantId: "total" };
const holderOf = (owner: string): SlotHolder => ({
  owner,
  key: claimKey(["job"], owner),
  sinceMs: nowMs,
});
const shown = ({ owner, key: { partition, sort }, sinceMs }: SlotHolder) => ({
  owner,
  key: { partition, sort },
  sinceMs,
});

const silent = { warn: () => undefined };

test("a place has at most as many holders as allowed, and as many again once they are removed", async () => {
  const store = dynamoSlots(database, tableName);
  const add = (owner: string, most: number, hasRow = true) =>
    store.add(ofTenant, { holder: holderOf(owner), most, hasRow, expiresAt });
  expect(await store.read(ofTenant)).toBeUndefined();
  await store.remove(ofTenant, ["nobody"]);
  expect(await add("a", 2)).toBe(false);
  expect(await store.read(ofTenant)).toBeUndefined();
  expect(await add("a", 2, false)).toBe(true);
  expect(await add("b", 2, false)).toBe(false);
  expect(await add("b", 1)).toBe(false);
  expect(await add("b", 2)).toBe(true);
  expect(await add("c", 2)).toBe(false);
  const holders = (await store.read(ofTenant)) ?? [];
  expect(holders.toSorted((one, other) => one.owner.localeCompare(other.owner))).toEqual(
    [holderOf("a"), holderOf("b")].map(shown),
  );
  await store.remove(ofTenant, ["b"]);
  await store.remove(ofTenant, ["a", "b", "nobody"]);
  expect(await store.read(ofTenant)).toEqual([]);
  expect(await add("c", 1)).toBe(true);
  expect(await store.read(ofTenant)).toEqual([shown(holderOf("c"))]);
});

test("lists the places of a handler", async () => {
  const store = dynamoSlots(database, tableName);
  const places: SlotPlace[] = [
    { handler: `${handler}-2`, limit: "perTenant", tenantId: "acme" },
    { handler: `${handler}-2`, limit: "perTenant", tenantId: undefined },
    { handler: `${handler}-2`, limit: "total" },
  ];
  for (const place of places)
    await store.add(place, { holder: holderOf("a"), most: 1, hasRow: false, expiresAt });
  const found = await store.list(`${handler}-2`);
  expect(found.map(({ place }) => place)).toEqual([places[1], places[0], places[2]]);
  expect(found[0]?.holders).toEqual([shown(holderOf("a"))]);
  expect(await store.list("none")).toEqual([]);
});

test("a slot is free once the claim of its holder has ended", async () => {
  const claims = dynamoClaimStore(database, tableName);
  const slots = openSlots(database, tableName, { clock: { now: () => nowMs }, log: silent });
  const place: SlotPlace = { handler: `${handler}-3`, limit: "total" };
  const [first, second] = [holderOf(crypto.randomUUID()), holderOf(crypto.randomUUID())];
  await claims.take(first.key, takenClaim(first.owner, nowMs), nowMs);
  expect(await slots.take(place, 1, first)).toBe(true);
  expect(await slots.take(place, 1, second)).toBe(false);
  await claims.complete(first.key, completedClaim(first.owner, nowMs));
  expect(await slots.take(place, 1, second)).toBe(true);
  await slots.leave(place, second.owner);
  expect(await dynamoSlots(database, tableName).read(place)).toEqual([]);
});

test.each<SlotPlace>([
  { handler: `${handler}-4`, limit: "total" },
  { handler: `${handler}-4`, limit: "perTenant", tenantId: "acme" },
])("the claim of a crashed run that loses its slot of %o still names its tenant", async (place) => {
  const claims = dynamoClaimStore(database, tableName);
  const slots = openSlots(database, tableName, { clock: { now: () => nowMs }, log: silent });
  const [first, second] = [holderOf(crypto.randomUUID()), holderOf(crypto.randomUUID())];
  const key = { ...first.key, tenantId: "acme" };
  const claim = takenClaim(first.owner, nowMs - 60_000, { generation: "g" });
  await claims.take(key, claim, nowMs - 60_000);
  expect(await slots.take(place, 1, first)).toBe(true);
  expect(await slots.take(place, 1, second)).toBe(true);
  const Key = { pk: key.partition, sk: key.sort };
  const { Item } = await database.send(new GetCommand({ TableName: tableName, Key }));
  expect(Item).toMatchObject({ generation: "g", in_progress_expiration: 0, tenantId: "acme" });
});

test("runs that reach an idle place together, in several processes, all get its free slots and no more", async () => {
  const processes = Array.from({ length: 4 }, () =>
    openSlots(database, tableName, { clock: { now: () => nowMs }, log: silent }),
  );
  const claims = dynamoClaimStore(database, tableName);
  const runs = Array.from({ length: 24 }, () => holderOf(crypto.randomUUID()));
  await Promise.all(
    runs.map(({ key, owner }) => claims.take(key, takenClaim(owner, nowMs), nowMs)),
  );
  const admitted = async (place: SlotPlace, most: number) => {
    const taken = await Promise.all(
      runs.map((run, n) => processes[n % processes.length]?.take(place, most, run)),
    );
    return taken.filter((isTaken) => isTaken === true).length;
  };
  expect(await admitted({ handler: `${handler}-4`, limit: "total" }, 24)).toBe(24);
  expect(await admitted({ handler: `${handler}-5`, limit: "total" }, 7)).toBe(7);
});

test.each([
  "ProvisionedThroughputExceededException",
  "RequestLimitExceeded",
  "ThrottlingException",
])("a run waits, and takes no slot, while DynamoDB refuses its calls with %s", async (name) => {
  let failure: string | undefined = name;
  const send = (command: never) =>
    failure === undefined
      ? database.send(command)
      : Promise.reject(Object.assign(new Error("slow down"), { name: failure }));
  let clock = nowMs;
  // Safe cast: slots only send commands.
  const throttled = { send } as unknown as Database;
  const lines: unknown[][] = [];
  const log = { warn: (...line: unknown[]) => void lines.push(line) };
  const slots = openSlots(throttled, tableName, { clock: { now: () => clock }, log });
  const place: SlotPlace = { handler: `${handler}-${name}`, limit: "total" };
  const run = holderOf(crypto.randomUUID());

  expect(await slots.take(place, 5, run)).toBe(false);
  expect(slots.isFull(place)).toBe(true);
  // Others at the place wait too, and the log has one line a minute for it.
  expect(await slots.take(place, 5, run)).toBe(false);
  const other: SlotPlace = { ...place, limit: "perTenant", tenantId: "acme" };
  expect(await slots.take(other, 5, run)).toBe(false);
  const reason = `${name}: slow down`;
  const line = ["slots.throttled", { ...place, reason }];
  expect(lines).toEqual([line, ["slots.throttled", { ...other, reason }]]);
  clock += 60_000;
  expect(await slots.take(place, 5, run)).toBe(false);
  expect(lines.slice(2)).toEqual([line]);
  failure = "AccessDeniedException";
  clock += 1_000;
  expect(slots.isFull(place)).toBe(false);
  await expect(slots.take(place, 5, run)).rejects.toThrow("slow down");
  failure = undefined;
  expect(await slots.take(place, 5, run)).toBe(true);
});
