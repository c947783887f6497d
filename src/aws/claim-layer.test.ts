import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import { DynamoDBClient, GetItemCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type EmbeddedStack, startEmbeddedStack } from "../embedded/index.ts";
import { ClaimLayer } from "./claim-layer.ts";
import { openDatabase } from "./dynamodb.ts";
import { ensureTables } from "./tables.ts";

let stack: EmbeddedStack;
let clientConfig: { endpoint: string; region: string; credentials: { accessKeyId: string; secretAccessKey: string } };
let client: DynamoDBClient;
let ids = 0;

beforeAll(async () => {
  stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  clientConfig = {
    endpoint: stack.endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "x", secretAccessKey: "x" },
  };
  client = new DynamoDBClient(clientConfig);
  const database = await openDatabase(clientConfig);
  const tables = [
    { name: "calls", tableName: "calls", partitionKey: "id", sortKey: undefined },
    { name: "sorted", tableName: "sorted", partitionKey: "pk", sortKey: "sk" },
  ];
  await ensureTables(database, tables, "create");
  database.destroy();
});
afterAll(async () => {
  client.destroy();
  await stack.close();
});
beforeEach(() => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
});
afterEach(() => {
  vi.restoreAllMocks();
});

const newEvent = () => ({ id: `event-${++ids}` });
const layer = (options: Partial<ConstructorParameters<typeof ClaimLayer>[0]> = {}) =>
  new ClaimLayer({ tableName: "calls", awsSdkV3Client: client, ...options });
const counted = (work: (event: { id: string }) => unknown = () => "done") => {
  const counter = { runs: 0 };
  const run = async (event: { id: string }) => {
    counter.runs += 1;
    return (await work(event)) as string;
  };
  return { counter, run };
};

test("a duplicate waits for its twin, and gets its answer", async () => {
  const gate = Promise.withResolvers<string>();
  const { run, counter } = counted(() => gate.promise);
  const once = makeIdempotent(run, { persistenceStore: layer({ waitMs: 60_000 }) });
  const event = newEvent();
  const twins = [once(event), once(event), once({ ...event })];
  await vi.waitFor(() => expect(counter.runs).toBe(1));
  gate.resolve("done");
  expect(await Promise.all(twins)).toEqual(["done", "done", "done"]);
  expect(counter.runs).toBe(1);
});

test("where it fails, its duplicate runs", async () => {
  const { run, counter } = counted(() => {
    if (counter.runs === 1) throw new Error("the first fails");
    return "done";
  });
  const once = makeIdempotent(run, { persistenceStore: layer({ awsSdkV3Client: undefined, clientConfig } as never) });
  const event = newEvent();
  await expect(once(event)).rejects.toThrow("the first fails");
  expect([await once(event), await once(event), counter.runs]).toEqual(["done", "done", 2]);
});

test("a function within another has a claim of its own, in the same layer", async () => {
  const persistenceStore = layer();
  const { run: charge, counter: charges } = counted(async () => ({ charged: true }));
  const chargeOnce = makeIdempotent(charge, { persistenceStore, keyPrefix: "charge" });
  const { run: order, counter: orders } = counted(async (event) => [await chargeOnce(event), await chargeOnce(event)]);
  const orderOnce = makeIdempotent(order, { persistenceStore, keyPrefix: "order" });
  const event = newEvent();
  const answer = [{ charged: true }, { charged: true }];
  expect([await orderOnce(event), await orderOnce(event)]).toEqual([answer, answer]);
  expect([charges.runs, orders.runs]).toEqual([1, 1]);
});

test("what Powertools' own layer has stored is answered, until it expires", async () => {
  const { run, counter } = counted(() => ({ nested: [1, "two"] }));
  const config = new IdempotencyConfig({ expiresAfterSeconds: 7_200 });
  const event = newEvent();
  await makeIdempotent(run, {
    persistenceStore: new DynamoDBPersistenceLayer({ tableName: "calls", awsSdkV3Client: client }),
    config,
  })(event);
  expect(await makeIdempotent(run, { persistenceStore: layer(), config })(event)).toEqual({ nested: [1, "two"] });
  expect(counter.runs).toBe(1);
});

test("a record of Powertools' own without a lease holds until it expires", async () => {
  const persistenceStore = layer({ waitMs: 0 });
  const { run } = counted();
  const once = makeIdempotent(run, { persistenceStore, config: new IdempotencyConfig({ eventKeyJmesPath: "id" }) });
  const event = newEvent();
  await once(event);
  const key = await keyOf(event.id);
  const record = (expiration: number) => ({ id: { S: key }, status: { S: "INPROGRESS" }, expiration: { N: String(expiration) } });
  const nowSeconds = Math.floor(Date.now() / 1000);
  await client.send(new PutItemCommand({ TableName: "calls", Item: record(nowSeconds + 60) }));
  await expect(once(event)).rejects.toMatchObject({ name: "IdempotencyAlreadyInProgressError" });
  await client.send(new PutItemCommand({ TableName: "calls", Item: record(nowSeconds - 60) }));
  expect(await once(event)).toBe("done");

  /** The key that the engine gives it: `<prefix>#<hash>`. */
  async function keyOf(id: string): Promise<string> {
    const { createHash } = await import("node:crypto");
    return `#${createHash("md5").update(JSON.stringify(id)).digest("base64")}`;
  }
});

test("a record lives in a table with a sort key too, and as long as the configuration says", async () => {
  const sorted = layer({ tableName: "sorted", keyAttr: "pk", sortKeyAttr: "sk", staticPkValue: "calls" });
  const config = new IdempotencyConfig({ eventKeyJmesPath: "id", expiresAfterSeconds: 60 });
  const { run, counter } = counted();
  const once = makeIdempotent(run, { persistenceStore: sorted, config });
  const event = newEvent();
  expect([await once(event), await once(event), counter.runs]).toEqual(["done", "done", 1]);
  const { createHash } = await import("node:crypto");
  const sk = `#${createHash("md5").update(JSON.stringify(event.id)).digest("base64")}`;
  const { Item } = await client.send(new GetItemCommand({ TableName: "sorted", Key: { pk: { S: "calls" }, sk: { S: sk } } }));
  expect(Number(Item?.["expiration"]?.N) - Date.now() / 1000).toBeLessThan(62);

  const unnamed = makeIdempotent(run, {
    persistenceStore: layer({ tableName: "sorted", keyAttr: "pk", sortKeyAttr: "sk" }),
    config,
  });
  expect(await unnamed(newEvent())).toBe("done");
});

test("the same key with another payload is refused, where payloads are validated", async () => {
  const { run } = counted();
  const config = new IdempotencyConfig({ eventKeyJmesPath: "id", payloadValidationJmesPath: "amount" });
  const once = makeIdempotent(run as (event: object) => Promise<string>, { persistenceStore: layer(), config });
  const event = newEvent();
  await once({ ...event, amount: 1 });
  expect(await once({ ...event, amount: 1 })).toBe("done");
  await expect(once({ ...event, amount: 2 })).rejects.toMatchObject({ name: "IdempotencyValidationError" });
});

test("a result that JSON does not have is an error, and the claim ends by itself", async () => {
  const { run, counter } = counted(() => 7n);
  const once = makeIdempotent(run, { persistenceStore: layer({ waitMs: 0 }) });
  const event = newEvent();
  await expect(once(event)).rejects.toMatchObject({
    cause: expect.objectContaining({ message: expect.stringContaining("JSON") }),
  });
  await expect(once(event)).rejects.toMatchObject({ name: "IdempotencyAlreadyInProgressError" });
  expect(counter.runs).toBe(1);
});

test("a layer is asked for a record", async () => {
  const persistenceStore = layer();
  const gate = Promise.withResolvers<string>();
  const { run, counter } = counted(() => gate.promise);
  const event = newEvent();
  const running = makeIdempotent(run, { persistenceStore })(event);
  await vi.waitFor(() => expect(counter.runs).toBe(1));
  expect((await persistenceStore.getRecord(event)).getStatus()).toBe("INPROGRESS");
  gate.resolve("done");
  await running;
  expect((await persistenceStore.getRecord(event)).getResponse()).toBe("done");
  await expect(persistenceStore.getRecord(newEvent())).rejects.toMatchObject({ name: "IdempotencyItemNotFoundError" });
  await expect(persistenceStore.saveSuccess(newEvent(), "x")).rejects.toThrow("is not claimed by this invocation");
});

describe("options", () => {
  test.each([
    [{ tableName: "" }, "tableName is missing"],
    [{ tableName: "t", statusAttr: "s" }, "there is no option statusAttr"],
    [{ tableName: "t", sortKeyAttr: "id" }, "are both id"],
    [{ tableName: "t", waitMs: -1 }, "waitMs is not a number of milliseconds"],
  ])("%j: %s", (options, problem) => {
    expect(() => new ClaimLayer(options)).toThrow(problem);
  });
});
