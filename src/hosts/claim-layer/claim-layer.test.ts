// own process: it fakes timers
import { createHash } from "node:crypto";
import { type AddressInfo, createServer } from "node:net";
import type { JSONValue } from "@aws-lambda-powertools/commons/types";
import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import { makeHandlerIdempotent } from "@aws-lambda-powertools/idempotency/middleware";
import { IdempotencyRecord } from "@aws-lambda-powertools/idempotency/persistence";
import { DynamoDBClient, GetItemCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";
import middy from "@middy/core";
import type { Context } from "aws-lambda";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { waitFor } from "../../../test/support/wait-for.ts";
import { openDatabase } from "../../aws/clients/dynamodb.ts";
import { ensureTables } from "../../aws/tables/tables.ts";
import { type EmbeddedStack, startEmbeddedStack } from "../../embedded/stack/index.ts";
import { ClaimLayer } from "./claim-layer.ts";

let stack: EmbeddedStack;
let clientConfig: {
  endpoint: string;
  region: string;
  credentials: { accessKeyId: string; secretAccessKey: string };
};
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
    { name: "calls", tableName: "calls", partitionKey: "id", sortKey: undefined, indexes: [] },
    { name: "sorted", tableName: "sorted", partitionKey: "pk", sortKey: "sk", indexes: [] },
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

/** The key that the engine makes: `<prefix>#<hash>`. */
const keyOf = (selected: unknown) =>
  `#${createHash("md5").update(JSON.stringify(selected)).digest("base64")}`;
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

test("a concurrent duplicate waits for the first call, and gets its result", async () => {
  const gate = Promise.withResolvers<string>();
  const { run, counter } = counted(() => gate.promise);
  const once = makeIdempotent(run, { persistenceStore: layer({ waitMs: 60_000 }) });
  const event = newEvent();
  const duplicates = [once(event), once(event), once({ ...event })];
  await waitFor(() => expect(counter.runs).toBe(1));
  gate.resolve("done");
  expect(await Promise.all(duplicates)).toEqual(["done", "done", "done"]);
  expect(counter.runs).toBe(1);
});

test("when the first call fails, its duplicate runs", async () => {
  const { run, counter } = counted(() => {
    if (counter.runs === 1) throw new Error("the first fails");
    return "done";
  });
  const once = makeIdempotent(run, {
    persistenceStore: layer({ awsSdkV3Client: undefined, clientConfig } as never),
  });
  const event = newEvent();
  await expect(once(event)).rejects.toThrow("the first fails");
  expect([await once(event), await once(event), counter.runs]).toEqual(["done", "done", 2]);
});

test("a call of the layer's own client that is never answered fails, and releases its caller", async () => {
  const silent = createServer();
  await new Promise<void>((listening) => silent.listen(0, "127.0.0.1", listening));
  const { port } = silent.address() as AddressInfo; // safe: it listens on a port
  const given = { ...clientConfig, endpoint: `http://127.0.0.1:${port}`, maxAttempts: 1 };
  const { run, counter } = counted(() => "done");
  const persistenceStore = layer({ awsSdkV3Client: undefined, clientConfig: given } as never);
  await expect(makeIdempotent(run, { persistenceStore })(newEvent())).rejects.toMatchObject({
    cause: { name: "TimeoutError" },
  });
  expect(counter.runs).toBe(0);
  silent.close();
});

test("nested functions have their own claims in the same layer", async () => {
  const persistenceStore = layer();
  const { run: charge, counter: charges } = counted(async () => ({ charged: true }));
  const chargeOnce = makeIdempotent(charge, { persistenceStore, keyPrefix: "charge" });
  const { run: order, counter: orders } = counted(async (event) => [
    await chargeOnce(event),
    await chargeOnce(event),
  ]);
  const orderOnce = makeIdempotent(order, { persistenceStore, keyPrefix: "order" });
  const event = newEvent();
  const answer = [{ charged: true }, { charged: true }];
  expect([await orderOnce(event), await orderOnce(event)]).toEqual([answer, answer]);
  expect([charges.runs, orders.runs]).toEqual([1, 1]);
});

test.each<[string, (event: { id: string }) => { id: string } | string, object]>([
  ["the same event", (event) => event, {}],
  ["an equal string", (event) => event.id, { dataIndexArgument: 0 }],
])(
  "an outer function completes its claim when the inner call is a repeat: %s",
  async (_, argumentOf, index) => {
    const persistenceStore = layer({ waitMs: 0 });
    const { run: charge, counter: charges } = counted(() => "charged");
    const { run: ship, counter: ships } = counted(() => {
      if (ships.runs <= 2) throw new Error("no carrier");
      return "shipped";
    });
    const chargeOnce = makeIdempotent(charge as (given: never) => Promise<string>, {
      ...{ persistenceStore, keyPrefix: "charge" },
      ...index,
    });
    const orderOnce = makeIdempotent(
      async (given: never) => [await chargeOnce(given), await ship(given)],
      { ...{ persistenceStore, keyPrefix: "order" }, ...index },
    );
    // Safe cast: both functions pass on what they are given.
    const given = argumentOf(newEvent()) as never;
    // The claim of an order that fails is released, although the engine's context is that of the charge.
    await expect(orderOnce(given)).rejects.toThrow("no carrier");
    await expect(orderOnce(given)).rejects.toThrow("no carrier");
    expect(await orderOnce(given)).toEqual(["charged", "shipped"]);
    expect(await orderOnce(given)).toEqual(["charged", "shipped"]);
    expect([charges.runs, ships.runs]).toEqual([1, 3]);
  },
);

test("returns what Powertools' own layer has stored, until it expires", async () => {
  const { run, counter } = counted(() => ({ nested: [1, "two"] }));
  const config = new IdempotencyConfig({ expiresAfterSeconds: 7_200 });
  const event = newEvent();
  await makeIdempotent(run, {
    persistenceStore: new DynamoDBPersistenceLayer({ tableName: "calls", awsSdkV3Client: client }),
    config,
  })(event);
  expect(await makeIdempotent(run, { persistenceStore: layer(), config })(event)).toEqual({
    nested: [1, "two"],
  });
  expect(counter.runs).toBe(1);
});

test("a record of Powertools without a lease holds until it expires", async () => {
  const persistenceStore = layer({ waitMs: 0 });
  const { run } = counted();
  const once = makeIdempotent(run, {
    persistenceStore,
    config: new IdempotencyConfig({ eventKeyJmesPath: "id" }),
  });
  const event = newEvent();
  await once(event);
  const key = keyOf(event.id);
  const record = (expiration: number) => ({
    id: { S: key },
    status: { S: "INPROGRESS" },
    expiration: { N: String(expiration) },
  });
  const nowSeconds = Math.floor(Date.now() / 1000);
  await client.send(new PutItemCommand({ TableName: "calls", Item: record(nowSeconds + 60) }));
  await expect(once(event)).rejects.toMatchObject({ name: "IdempotencyAlreadyInProgressError" });
  await client.send(new PutItemCommand({ TableName: "calls", Item: record(nowSeconds - 60) }));
  expect(await once(event)).toBe("done");
});

test("stores a record in a table with a sort key too, for as long as the configuration says", async () => {
  const sorted = layer({
    tableName: "sorted",
    keyAttr: "pk",
    sortKeyAttr: "sk",
    staticPkValue: "calls",
  });
  const config = new IdempotencyConfig({ eventKeyJmesPath: "id", expiresAfterSeconds: 60 });
  const { run, counter } = counted();
  const once = makeIdempotent(run, { persistenceStore: sorted, config });
  const event = newEvent();
  expect([await once(event), await once(event), counter.runs]).toEqual(["done", "done", 1]);
  const sk = keyOf(event.id);
  const { Item } = await client.send(
    new GetItemCommand({ TableName: "sorted", Key: { pk: { S: "calls" }, sk: { S: sk } } }),
  );
  expect(Number(Item?.["expiration"]?.N) - Date.now() / 1000).toBeLessThan(62);

  const unnamed = makeIdempotent(run, {
    persistenceStore: layer({ tableName: "sorted", keyAttr: "pk", sortKeyAttr: "sk" }),
    config,
  });
  expect(await unnamed(newEvent())).toBe("done");
});

test("refuses the same key with another payload when payloads are validated", async () => {
  const { run } = counted();
  const config = new IdempotencyConfig({
    eventKeyJmesPath: "id",
    payloadValidationJmesPath: "amount",
  });
  const once = makeIdempotent(run as (event: object) => Promise<string>, {
    persistenceStore: layer(),
    config,
  });
  const event = newEvent();
  await once({ ...event, amount: 1 });
  expect(await once({ ...event, amount: 1 })).toBe("done");
  await expect(once({ ...event, amount: 2 })).rejects.toMatchObject({
    name: "IdempotencyValidationError",
  });
});

test("getRecord returns the record of an event", async () => {
  const persistenceStore = layer();
  const gate = Promise.withResolvers<string>();
  const { run, counter } = counted(() => gate.promise);
  const event = newEvent();
  const running = makeIdempotent(run, { persistenceStore })(event);
  await waitFor(() => expect(counter.runs).toBe(1));
  expect((await persistenceStore.getRecord(event)).getStatus()).toBe("INPROGRESS");
  gate.resolve("done");
  await running;
  expect((await persistenceStore.getRecord(event)).getResponse()).toBe("done");
  await expect(persistenceStore.getRecord(newEvent())).rejects.toMatchObject({
    name: "IdempotencyItemNotFoundError",
  });
});

test("stores an unclaimed result unless another record exists", async () => {
  const { run, counter } = counted();
  const validating = new IdempotencyConfig({
    eventKeyJmesPath: "id",
    payloadValidationJmesPath: "id",
  });
  for (const config of [new IdempotencyConfig({}), validating]) {
    const persistenceStore = layer({ waitMs: 0 });
    persistenceStore.configure({ config });
    const event = newEvent();
    await persistenceStore.saveSuccess(event, "stored");
    expect(await makeIdempotent(run, { persistenceStore, config })(event)).toBe("stored");
    expect((await persistenceStore.getRecord(event)).payloadHash === "").toBe(
      config !== validating,
    );
  }
  expect(counter.runs).toBe(0);
  const persistenceStore = layer({ waitMs: 0 });
  const event = newEvent();
  await persistenceStore.saveSuccess(event, "stored");
  await persistenceStore.deleteRecord(event); // nobody's claim: it is left
  await expect(persistenceStore.saveSuccess(event, "again")).rejects.toThrow(
    "is not claimed by this invocation",
  );
});

test("a result that cannot be stored for now leaves its claim to expire", async () => {
  const { run, counter } = counted((event) => (event.id.endsWith("0") ? Number.NaN : "done"));
  for (const id of [`${newEvent().id}0`, `${newEvent().id}1`]) {
    const disturbed = new DynamoDBClient(clientConfig);
    disturbed.middlewareStack.add(
      (next) => async (parameters) => {
        const isCompletion = JSON.stringify(parameters.input).includes("completed_by = ");
        if (isCompletion)
          throw Object.assign(new Error("slow down"), {
            name: "ProvisionedThroughputExceededException",
          });
        return next(parameters);
      },
      { step: "initialize" },
    );
    const once = makeIdempotent(run, {
      persistenceStore: layer({ awsSdkV3Client: disturbed, waitMs: 0 }),
    });
    await expect(once({ id })).rejects.toMatchObject({ cause: { message: "slow down" } });
    await expect(once({ id })).rejects.toMatchObject({ name: "IdempotencyAlreadyInProgressError" });
    disturbed.destroy();
  }
  expect(counter.runs).toBe(2);
});

test("does not write a result to a claim that another invocation has taken over", async () => {
  const { run } = counted(async (event) => {
    const Item = {
      id: { S: keyOf(event) },
      owner: { S: "somebody else" },
      status: { S: "INPROGRESS" },
      expiration: { N: "9" },
    };
    await client.send(new PutItemCommand({ TableName: "calls", Item }));
    return Number.NaN;
  });
  const once = makeIdempotent(run, { persistenceStore: layer() });
  await expect(once(newEvent())).rejects.toMatchObject({
    cause: { message: expect.stringContaining("took it over") },
  });
});

test("a subclass may change the keys of records, and only saveInProgress makes claims", async () => {
  class Tenant extends ClaimLayer {
    protected override getHashedIdempotencyKey(data: JSONValue): string {
      return `ann#${super.getHashedIdempotencyKey(data)}`;
    }
    put(idempotencyKey: string): Promise<void> {
      return this._putRecord(new IdempotencyRecord({ idempotencyKey, status: "INPROGRESS" }));
    }
  }
  const persistenceStore = new Tenant({ tableName: "calls", awsSdkV3Client: client });
  const { run, counter } = counted((event) => {
    event.id += " changed";
    return "done";
  });
  const once = makeIdempotent(run, { persistenceStore });
  const event = newEvent();
  expect([await once({ ...event }), await once({ ...event }), counter.runs]).toEqual([
    "done",
    "done",
    1,
  ]);
  const Key = { id: { S: `ann#${keyOf(event)}` } };
  expect(
    (await client.send(new GetItemCommand({ TableName: "calls", Key }))).Item?.["status"]?.S,
  ).toBe("COMPLETED");
  await expect(persistenceStore.put("k")).rejects.toThrow("k is claimed only by saveInProgress");
});

test("under Middy, a duplicate takes over from a call that fails", async () => {
  const gate = Promise.withResolvers<string>();
  const { run, counter } = counted(() => (counter.runs === 1 ? gate.promise : "done"));
  const handler = middy()
    .use(makeHandlerIdempotent({ persistenceStore: layer({ waitMs: 60_000 }) }))
    .handler((event) => run(event as { id: string })); // what it is called with
  const call = (event: object) =>
    handler(event, { getRemainingTimeInMillis: () => 60_000 } as Context); // the part that is read
  const event = newEvent();
  const first = call(event);
  await waitFor(() => expect(counter.runs).toBe(1));
  const second = call({ ...event });
  gate.reject(new Error("the first fails"));
  await expect(first).rejects.toThrow("the first fails");
  expect(await second).toBe("done");
  expect([await call({ ...event }), counter.runs]).toEqual(["done", 2]);
});

test("releases a claim that the engine abandons", async () => {
  const persistenceStore = layer({ waitMs: 60_000 });
  const gate = Promise.withResolvers<string>();
  const { run, counter } = counted(() => gate.promise);
  const event = newEvent();
  const first = makeIdempotent(run, { persistenceStore })(event);
  await waitFor(() => expect(counter.runs).toBe(1));
  const duplicate = layer({ waitMs: 60_000 });
  await expect(duplicate.saveInProgress(event)).rejects.toMatchObject({
    name: "IdempotencyItemAlreadyExistsError",
  });
  const waiting = duplicate.getRecord(event);
  gate.reject(new Error("the first fails"));
  await expect(first).rejects.toThrow("the first fails");
  await expect(waiting).rejects.toMatchObject({ name: "IdempotencyInconsistentStateError" });
  const asked = layer();
  await waitFor(() =>
    expect(asked.getRecord({ ...event })).rejects.toMatchObject({
      name: "IdempotencyItemNotFoundError",
    }),
  );
});

test("a duplicate does not wait into its function's timeout", async () => {
  const gate = Promise.withResolvers<string>();
  const { run, counter } = counted(() => gate.promise);
  const event = newEvent();
  const first = makeIdempotent(run, { persistenceStore: layer() })(event);
  await waitFor(() => expect(counter.runs).toBe(1));
  const send = vi.spyOn(client, "send");
  // The part of it that is read. Half a second is left for the refusal.
  const lambdaContext = { getRemainingTimeInMillis: () => 500 } as Context;
  const duplicate = makeIdempotent(run, {
    persistenceStore: layer({ waitMs: 60_000 }),
    config: new IdempotencyConfig({ lambdaContext }),
  });
  await expect(duplicate(event)).rejects.toMatchObject({
    name: "IdempotencyAlreadyInProgressError",
  });
  expect(send.mock.calls.filter(([command]) => command instanceof GetItemCommand)).toEqual([]);
  gate.resolve("done");
  await first;
});

test("a duplicate with another payload fails without waiting", async () => {
  const gate = Promise.withResolvers<string>();
  const { run, counter } = counted(() => gate.promise);
  const config = new IdempotencyConfig({
    eventKeyJmesPath: "id",
    payloadValidationJmesPath: "amount",
  });
  const once = makeIdempotent(run as (event: object) => Promise<string>, {
    persistenceStore: layer({ waitMs: 600_000 }),
    config,
  });
  const event = newEvent();
  const first = once({ ...event, amount: 1 });
  await waitFor(() => expect(counter.runs).toBe(1));
  await expect(once({ ...event, amount: 2 })).rejects.toMatchObject({
    name: "IdempotencyValidationError",
  });
  gate.resolve("done");
  await first;
});

describe("IdempotencyConfig", () => {
  const once = (
    config: IdempotencyConfig,
    work: () => unknown = () => ({ charged: true }),
    own = layer({ waitMs: 0 }),
  ) => {
    const { run, counter } = counted(work);
    return {
      call: makeIdempotent(run as (event: object) => Promise<unknown>, {
        persistenceStore: own,
        config,
      }),
      counter,
    };
  };

  test("responseHook changes what a repeat gets, even after waiting", async () => {
    const gate = Promise.withResolvers<object>();
    const responseHook = (response: unknown, record: IdempotencyRecord) =>
      ({ response, key: record.idempotencyKey }) as never; // any value is given
    const { call, counter } = once(
      new IdempotencyConfig({ responseHook }),
      () => gate.promise,
      layer({ waitMs: 60_000 }),
    );
    const event = newEvent();
    const duplicates = [call(event), call({ ...event })];
    await waitFor(() => expect(counter.runs).toBe(1));
    gate.resolve({ charged: true });
    const hooked = { response: { charged: true }, key: keyOf(event) };
    expect(await Promise.all(duplicates)).toEqual([{ charged: true }, hooked]);
    expect(await call(event)).toEqual(hooked);
  });

  test("useLocalCache answers a repeat without calling DynamoDB, up to maxLocalCacheSize", async () => {
    const send = vi.spyOn(client, "send");
    const { call, counter } = once(
      new IdempotencyConfig({ useLocalCache: true, maxLocalCacheSize: 1 }),
    );
    const [a, b] = [newEvent(), newEvent()];
    await call(a);
    const calls = send.mock.calls.length;
    expect([await call(a), send.mock.calls.length]).toEqual([{ charged: true }, calls]);
    await call(b);
    const before = send.mock.calls.length;
    expect([await call(a), counter.runs]).toEqual([{ charged: true }, 2]);
    expect(send.mock.calls.length).toBeGreaterThan(before);
  });

  test("useLocalCache answers a repeat of a call that returned nothing with null, as the table does", async () => {
    const config = new IdempotencyConfig({ useLocalCache: true });
    const { call, counter } = once(config, () => undefined);
    const event = newEvent();
    await call(event);
    expect([await call(event), counter.runs]).toEqual([null, 1]);
  });

  test.each([
    ["an object", { at: new Date(0), left: undefined }, { at: "1970-01-01T00:00:00.000Z" }],
    [
      "bytes and a map",
      { one: new Map([["a", Buffer.from([1])]]) },
      { one: { a: Uint8Array.of(1) } },
    ],
  ])(
    "useLocalCache answers with %s as the table does, whatever the caller does to its result",
    async (_, made, stored) => {
      const config = new IdempotencyConfig({ useLocalCache: true });
      const { call } = once(config, () => made as never);
      const event = newEvent();
      Object.assign((await call(event)) as never, { later: true });
      expect(await call(event)).toStrictEqual(stored);
      const { call: elsewhere } = once(new IdempotencyConfig({}), () => "never");
      expect(await elsewhere(event)).toStrictEqual(stored);
    },
  );

  test("throwOnNoIdempotencyKey refuses a call without a key; otherwise it runs without idempotency", async () => {
    const strict = once(
      new IdempotencyConfig({ eventKeyJmesPath: "missing", throwOnNoIdempotencyKey: true }),
    );
    await expect(strict.call(newEvent())).rejects.toMatchObject({
      cause: { name: "IdempotencyKeyError" },
    });
    const lax = once(new IdempotencyConfig({ eventKeyJmesPath: "missing" }));
    const event = newEvent();
    await Promise.all([lax.call(event), lax.call(event)]);
    expect([strict.counter.runs, lax.counter.runs]).toEqual([0, 2]);
  });

  test("hashFunction, keyPrefix and Powertools' JMESPath functions determine the key", async () => {
    const { run } = counted();
    const config = new IdempotencyConfig({
      eventKeyJmesPath: "powertools_json(body).id",
      hashFunction: "sha256",
    });
    const { id } = newEvent();
    const charge = makeIdempotent(run as (event: object) => Promise<unknown>, {
      persistenceStore: layer(),
      config,
      keyPrefix: "p",
    });
    await charge({ body: JSON.stringify({ id }) });
    const Key = {
      id: { S: `p#${createHash("sha256").update(JSON.stringify(id)).digest("base64")}` },
    };
    expect(
      (await client.send(new GetItemCommand({ TableName: "calls", Key }))).Item?.["status"]?.S,
    ).toBe("COMPLETED");
  });

  test("dataIndexArgument selects the argument to hash", async () => {
    let runs = 0;
    const fn = async (_note: string, order: { id: string }) => `${order.id}, run ${++runs}`;
    const call = makeIdempotent(fn, { persistenceStore: layer(), dataIndexArgument: 1 });
    const { id } = newEvent();
    expect([await call("a", { id }), await call("b", { id })]).toEqual([
      `${id}, run 1`,
      `${id}, run 1`,
    ]);
  });
});

test("a record of Powertools that expires before its lease is still in progress", async () => {
  const event = newEvent();
  const now = Date.now();
  const expiration = { N: String(Math.floor(now / 1000) - 60) };
  const lease = { N: String(now + 60_000) };
  const Item = {
    id: { S: keyOf(event) },
    status: { S: "INPROGRESS" },
    expiration,
    in_progress_expiration: lease,
  };
  await client.send(new PutItemCommand({ TableName: "calls", Item }));
  const { run } = counted();
  const once = makeIdempotent(run, { persistenceStore: layer({ waitMs: 0 }) });
  await expect(once(event)).rejects.toMatchObject({ name: "IdempotencyAlreadyInProgressError" });
});

test("does not renew a lease beyond the function's time, even when its work never ends", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  try {
    const send = vi.spyOn(client, "send");
    const { run, counter } = counted(() => new Promise(() => undefined));
    const config = new IdempotencyConfig({});
    config.registerLambdaContext({ getRemainingTimeInMillis: () => 500 } as Context); // the part that is read
    void makeIdempotent(run, { persistenceStore: layer(), config })(newEvent());
    await waitFor(() => expect(counter.runs).toBe(1));
    vi.spyOn(Date, "now").mockReturnValue(Date.now() + 1_000);
    const calls = send.mock.calls.length;
    vi.advanceTimersByTime(60_000);
    expect([send.mock.calls.length, vi.getTimerCount()]).toEqual([calls, 0]);
  } finally {
    vi.useRealTimers();
  }
});

describe("options", () => {
  test.each([
    [{ tableName: "" }, "tableName is missing"],
    [{ tableName: "t", statusAttr: "s" }, "there is no option statusAttr"],
    [{ tableName: "t", sortKeyAttr: "id" }, "are both id"],
    [{ tableName: "t", waitMs: -1 }, "waitMs is not a number of milliseconds"],
    [{ tableName: "t", waitMs: Number.NaN }, "waitMs is not a number of milliseconds"],
    [{ tableName: "t", waitMs: "5000" as never }, "waitMs is not a number of milliseconds"], // as in JavaScript
    [{ tableName: "t", sortKeyAttr: "" }, "sortKeyAttr is not a name"],
    [{ tableName: "t", keyAttr: 5 as never }, "keyAttr is not a name"], // as in JavaScript
    [{ tableName: "t", awsSdkV3Client: {} as never }, "awsSdkV3Client is not a DynamoDBClient"], // as in JavaScript
  ])("%j: %s", (options, problem) => {
    expect(() => new ClaimLayer(options)).toThrow(problem);
  });

  test("POWERTOOLS_IDEMPOTENCY_DISABLED is refused in production only", () => {
    vi.stubEnv("POWERTOOLS_IDEMPOTENCY_DISABLED", "1");
    try {
      for (const environment of ["test", "development"]) {
        vi.stubEnv("NODE_ENV", environment);
        expect(() => new ClaimLayer({ tableName: "t" })).not.toThrow();
      }
      vi.stubEnv("NODE_ENV", "production");
      expect(() => new ClaimLayer({ tableName: "t" })).toThrow("unset it in production");
    } finally {
      vi.unstubAllEnvs();
    }
  });
});
