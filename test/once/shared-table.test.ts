import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import type { BasePersistenceLayer } from "@aws-lambda-powertools/idempotency/persistence";
import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { ClaimLayer } from "../../src/hosts/claim-layer/index.ts";
import {
  hashOf,
  type IdempotencyTable,
  keyOf,
  startIdempotencyTable,
} from "./idempotency-table.ts";

/**
 * One table, and instances with Powertools' own layer, with keelson 0.1.0 and with this keelson at the same time: a
 * rolling deployment, or what is there after a rollback. What 0.1.0 has written stands here as its items.
 */
let table: IdempotencyTable;
let ids = 0;

beforeAll(async () => {
  table = await startIdempotencyTable();
});
afterAll(() => table.close());
beforeEach(() => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
});
afterEach(() => {
  vi.restoreAllMocks();
});

interface Call {
  readonly id: string;
  readonly amount: number;
}
type Writing =
  | { readonly state: "in progress" }
  | { readonly state: "completed" | "expired"; readonly result: unknown }
  | { readonly state: "in progress, its lease over" };
type Party = "Powertools" | "keelson 0.1.0" | "keelson";

const layers: Record<Exclude<Party, "keelson 0.1.0">, () => BasePersistenceLayer> = {
  Powertools: () =>
    new DynamoDBPersistenceLayer({ tableName: table.tableName, awsSdkV3Client: table.client() }),
  keelson: () =>
    new ClaimLayer({ tableName: table.tableName, awsSdkV3Client: table.client(), waitMs: 0 }),
};

const config = (validates: boolean, expiresAfterSeconds = 3_600) =>
  new IdempotencyConfig({
    eventKeyJmesPath: "id",
    expiresAfterSeconds,
    ...(validates ? { payloadValidationJmesPath: "amount" } : {}),
  });

const nowSeconds = () => Math.floor(Date.now() / 1_000);

/** What 0.1.0 writes: an answer as bytes, whose first says whether the rest is compressed. */
async function writeAsBefore(call: Call, writing: Writing, validates: boolean): Promise<void> {
  const owner = "5f0e7c1e-0000-4000-8000-000000000000";
  const id = { S: keyOf(call.id) };
  const common = {
    owner: { S: owner },
    ...(validates ? { validation: { S: hashOf(call.amount) } } : {}),
  };
  if (writing.state === "in progress" || writing.state === "in progress, its lease over") {
    const leaseMs = writing.state === "in progress" ? Date.now() + 30_000 : Date.now() - 10_000;
    const expiration = { N: String(Math.ceil(leaseMs / 1_000) + 300) };
    const lease = { N: String(leaseMs) };
    return table.put({
      id,
      ...common,
      status: { S: "INPROGRESS" },
      expiration,
      in_progress_expiration: lease,
    });
  }
  const expiration = { N: String(nowSeconds() + (writing.state === "expired" ? -10 : 3_600)) };
  const body = writing.result === undefined ? undefined : JSON.stringify(writing.result);
  const text = JSON.stringify({ status: 200, headers: {}, body });
  const record: Record<string, AttributeValue> = {
    id,
    ...common,
    status: { S: "COMPLETED" },
    expiration,
  };
  if (text.length < 1_024)
    return table.put({ ...record, data: { B: Buffer.concat([Buffer.of(0), Buffer.from(text)]) } });
  const bytes = Buffer.concat([Buffer.of(1), gzipSync(text, { level: 1 })]);
  let parts = 0;
  for (let start = 0; start < bytes.length; start += 350_000) {
    const part = { S: `${keyOf(call.id)}#${owner}#${parts}` };
    await table.put({ id: part, data: { B: bytes.subarray(start, start + 350_000) }, expiration });
    parts += 1;
  }
  return table.put({ ...record, parts: { N: String(parts) } });
}

/** Leaves a record as a party of that kind does, by running it wherever it can be run. */
async function write(
  party: Party,
  call: Call,
  writing: Writing,
  validates: boolean,
): Promise<void> {
  if (party === "keelson 0.1.0") return writeAsBefore(call, writing, validates);
  const isOver = writing.state === "in progress, its lease over";
  const isRunning = isOver || writing.state === "in progress";
  const started = Promise.withResolvers<void>();
  const run = makeIdempotent(
    async (_call: Call) => {
      started.resolve();
      return isRunning ? new Promise<never>(() => undefined) : (writing.result as string); // any value is stored
    },
    { persistenceStore: layers[party](), config: config(validates) },
  );
  const running = run(call);
  await (isRunning ? started.promise : running);
  if (!isOver && writing.state !== "expired") return;
  const item = { ...(await table.get(keyOf(call.id))) };
  if (isOver) item["in_progress_expiration"] = { N: String(Date.now() - 10_000) };
  else item["expiration"] = { N: String(nowSeconds() - 10) };
  await table.put(item);
}

/** What a caller gets of that party: its answer, `ran` where its function has run, or the name of the error. */
async function read(party: keyof typeof layers, call: Call, validates: boolean): Promise<unknown> {
  const run = makeIdempotent(async (_call: Call) => "ran", {
    persistenceStore: layers[party](),
    config: config(validates),
  });
  return run(call).catch((error: Error) => error.name);
}

const result = { nested: [1, "two", { three: null }] };
const inProgress = "IdempotencyAlreadyInProgressError";
const large = randomBytes(600_000).toString("base64");

const both = (answer: unknown) => ({ Powertools: answer, keelson: answer });
const rows: [Party, Writing, { readonly Powertools: unknown; readonly keelson: unknown }][] = [
  ["Powertools", { state: "in progress" }, both(inProgress)],
  ["Powertools", { state: "in progress, its lease over" }, both("ran")],
  ["Powertools", { state: "completed", result }, both(result)],
  ["Powertools", { state: "completed", result: null }, both(null)],
  // Under Middy `undefined` is no answer at all.
  [
    "Powertools",
    { state: "completed", result: undefined },
    { Powertools: undefined, keelson: null },
  ],
  [
    "Powertools",
    { state: "completed", result: new Uint8Array([0, 1]) },
    both(new Uint8Array([0, 1])),
  ],
  ["Powertools", { state: "expired", result }, both("ran")],
  ["keelson 0.1.0", { state: "in progress" }, both(inProgress)],
  ["keelson 0.1.0", { state: "in progress, its lease over" }, both("ran")],
  // What 0.1.0 completed is bytes for Powertools: nothing can be done about that any more.
  [
    "keelson 0.1.0",
    { state: "completed", result },
    { Powertools: expect.any(Uint8Array), keelson: result },
  ],
  [
    "keelson 0.1.0",
    { state: "completed", result: null },
    { Powertools: expect.any(Uint8Array), keelson: null },
  ],
  [
    "keelson 0.1.0",
    { state: "completed", result: undefined },
    { Powertools: expect.any(Uint8Array), keelson: null },
  ],
  [
    "keelson 0.1.0",
    { state: "completed", result: large },
    { Powertools: undefined, keelson: large },
  ],
  ["keelson 0.1.0", { state: "expired", result }, both("ran")],
  ["keelson", { state: "in progress" }, both(inProgress)],
  ["keelson", { state: "in progress, its lease over" }, both("ran")],
  ["keelson", { state: "completed", result }, both(result)],
  ["keelson", { state: "completed", result: null }, both(null)],
  ["keelson", { state: "completed", result: undefined }, both(null)],
  ["keelson", { state: "completed", result: new Uint8Array([0, 1]) }, both(new Uint8Array([0, 1]))],
  // Over 400 KB it lies in parts, which Powertools does not look for.
  ["keelson", { state: "completed", result: large }, { Powertools: undefined, keelson: large }],
  ["keelson", { state: "expired", result }, both("ran")],
];

for (const [party, writing, expected] of rows) {
  const shown =
    "result" in writing ? (JSON.stringify(writing.result) ?? "undefined").slice(0, 20) : "";
  for (const reader of ["Powertools", "keelson"] as const) {
    test(`${reader} reads what ${party} left ${writing.state} ${shown}`, async () => {
      const call = { id: `call-${++ids}`, amount: 1 };
      await write(party, call, writing, false);
      expect(await read(reader, call, false)).toEqual(expected[reader]);
    });
  }
}

test.each(["Powertools", "keelson 0.1.0", "keelson"] as const)(
  "every layer validates a repeat of a payload that %s stored",
  async (party) => {
    for (const writing of [{ state: "in progress" }, { state: "completed", result }] as const) {
      for (const reader of ["Powertools", "keelson"] as const) {
        const call = { id: `call-${++ids}`, amount: 1 };
        await write(party, call, writing, true);
        expect(await read(reader, { ...call, amount: 2 }, true)).toBe("IdempotencyValidationError");
        const isGarbled = reader === "Powertools" && party === "keelson 0.1.0";
        const answer = isGarbled ? expect.any(Uint8Array) : result;
        expect(await read(reader, call, true)).toEqual(
          writing.state === "completed" ? answer : inProgress,
        );
      }
    }
  },
);

test("a completed record has Powertools' format, and also names who completed it", async () => {
  const call = { id: `call-${++ids}`, amount: 1 };
  await write("Powertools", call, { state: "completed", result }, true);
  const stock = await table.get(keyOf(call.id));
  await write("keelson", { ...call, id: `call-${++ids}` }, { state: "completed", result }, true);
  const { completed_by: completedBy, ...ours } = (await table.get(keyOf(`call-${ids}`))) ?? {};
  expect(completedBy?.S).toMatch(/^[0-9a-f-]{36}$/);
  expect(ours).toEqual({
    ...stock,
    id: { S: keyOf(`call-${ids}`) },
    expiration: { N: expect.any(String) },
  });
  expect(Math.abs(Number(ours["expiration"]?.N) - Number(stock?.["expiration"]?.N))).toBeLessThan(
    10,
  );
});

test("a completion whose response was lost is no error", async () => {
  const client = table.client();
  let losses = 1;
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (parameters) => {
        const output = await next(parameters);
        if (commandName === "PutItemCommand" && isCompletion(parameters.input) && losses-- > 0)
          throw new Error("socket hang up");
        return output;
      },
    { step: "initialize" },
  );
  const isCompletion = (input: object) =>
    "Item" in input && JSON.stringify(input.Item).includes("COMPLETED");
  const persistenceStore = new ClaimLayer({ tableName: table.tableName, awsSdkV3Client: client });
  const run = makeIdempotent(async (_call: Call) => result, {
    persistenceStore,
    config: config(false),
  });
  const call = { id: `call-${++ids}`, amount: 1 };
  expect(await run(call)).toEqual(result);
  expect(losses).toBeLessThan(1);
  expect(await run(call)).toEqual(result);
});

test("a record that Powertools' layer writes over a claim taken over from it stays, and is read as its own", async () => {
  const call = { id: `call-${++ids}`, amount: 1 };
  const late = Promise.withResolvers<Uint8Array>();
  const started = Promise.withResolvers<void>();
  const stock = makeIdempotent(
    async (_call: Call) => {
      started.resolve();
      return late.promise as unknown as string; // any value is stored
    },
    { persistenceStore: layers.Powertools(), config: config(false) },
  );
  const stockRun = stock(call);
  await started.promise;
  await table.put({
    ...(await table.get(keyOf(call.id))),
    in_progress_expiration: { N: String(Date.now() - 10_000) },
  });
  const ours = makeIdempotent(
    async (_call: Call) => {
      late.resolve(new Uint8Array([1, 2]));
      await stockRun;
      return "ours";
    },
    { persistenceStore: layers.keelson(), config: config(false) },
  );
  await expect(ours(call)).rejects.toMatchObject({
    cause: { message: expect.stringContaining("took it over") },
  });
  expect(await read("keelson", call, false)).toEqual(new Uint8Array([1, 2]));
  expect(await read("Powertools", call, false)).toEqual(new Uint8Array([1, 2]));
});
