import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { DeleteItemCommand, DynamoDBClient, ScanCommand } from "@aws-sdk/client-dynamodb";
import { PutCommand } from "@aws-sdk/lib-dynamodb";
import type { DynamoDBRecord } from "aws-lambda";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer } from "../../app/server/server.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { lambdaOutbox, lambdaSweep } from "./workers.ts";

declare module "../../base/types/names.ts" {
  interface Events {
    "drop.fell": { name: string };
  }
}

let heard: string[] = [];
const drops = defineFeature("drops", (r) => {
  r.event("drop.fell", z.object({ name: z.string() }));
  r.on("drop.fell", {
    name: "hear",
    handler: async (_ctx, { payload }) => void heard.push(payload.name),
  });
  r.write("drop.fall", {
    input: z.object({ names: z.array(z.string()) }),
    handler: async (ctx, { names }) => {
      for (const name of names) await ctx.publish("drop.fell", { name });
    },
  });
});
const build = () => buildServer({ features: [drops], log: { level: "debug" } });

let app: TestApp;
let client: DynamoDBClient;
let table: string;
let lines: Record<string, unknown>[] = [];
let calls: string[] = [];

beforeAll(async () => {
  app = await startTestApp(build());
  await app.settled(); // makes bus and queues
  table = app.env["KEELSON_TABLE_OUTBOX"] ?? "keelson-outbox";
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  client = new DynamoDBClient({
    endpoint: app.env["AWS_ENDPOINT_URL"] ?? "",
    region: "us-east-1",
    credentials,
  });
});
afterAll(async () => {
  client.destroy();
  await app.close();
});
beforeEach(() => {
  heard = [];
  lines = [];
  calls = [];
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    for (const line of String(text).trim().split("\n")) lines.push(JSON.parse(line));
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  vi.useRealTimers();
});

const said = (msg: string) => lines.filter((line) => line["msg"] === msg);

/** The keys in the outbox, the oldest first. */
async function waiting() {
  const { Items = [] } = await client.send(
    new ScanCommand({ TableName: table, ConsistentRead: true }),
  );
  const keys = Items.map(({ pk, sk }) => ({ pk: String(pk?.S), sk: String(sk?.S) }));
  return keys.sort((a, b) => (a.sk < b.sk ? -1 : 1));
}

/** Commits events that nobody dispatches, and gives what the stream then tells of them. */
async function committed(...names: string[]): Promise<DynamoDBRecord[]> {
  const before = new Set((await waiting()).map(({ sk }) => sk));
  app.faults.before("PutEvents", 1).fail("InternalException");
  await app.call("drops.drop.fall", { names });
  return (await waiting()).filter(({ sk }) => !before.has(sk)).map(recordOf);
}

let sequence = 100_000_000_000;
const recordOf = ({ pk, sk }: { pk: string; sk: string }): DynamoDBRecord => {
  sequence += 1;
  return {
    eventID: String(sequence),
    eventName: "INSERT",
    eventSource: "aws:dynamodb",
    eventSourceARN: `arn:aws:dynamodb:us-east-1:000000000000:table/${table}/stream/2026-01-01T00:00:00.000`,
    awsRegion: "us-east-1",
    dynamodb: {
      Keys: { pk: { S: pk }, sk: { S: sk } },
      SequenceNumber: String(sequence),
      StreamViewType: "KEYS_ONLY",
    },
  };
};
const numberOf = (record: DynamoDBRecord | undefined) => String(record?.dynamodb?.SequenceNumber);
const failures = (...records: (DynamoDBRecord | undefined)[]) => ({
  batchItemFailures: records.map((record) => ({ itemIdentifier: numberOf(record) })),
});
const lasting = (ms: number) => {
  const endMs = Date.now() + ms;
  return { getRemainingTimeInMillis: () => endMs - Date.now() };
};
/** Moves the clock of the function on, so that rows are no longer on their way. */
const later = (ms = 5_000) =>
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + ms, shouldAdvanceTime: true });

/** An endpoint in front of the app's that counts calls, and may answer in its place. */
async function infront(
  answer: (
    operation: string,
    body: string,
  ) => Promise<{ status: number; body: string } | undefined> | undefined,
) {
  const target = app.env["AWS_ENDPOINT_URL"] ?? "";
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const operation = String(request.headers["x-amz-target"]).split(".").at(-1) ?? "";
    calls.push(operation);
    const own = await answer(operation, Buffer.concat(chunks).toString());
    if (own !== undefined)
      return response
        .writeHead(own.status, { "content-type": "application/x-amz-json-1.0" })
        .end(own.body);
    const {
      host: _host,
      "content-length": _length,
      connection: _connection,
      ...headers
    } = request.headers;
    const given = await fetch(target, {
      method: "POST",
      headers: headers as Record<string, string>,
      body: Buffer.concat(chunks),
    });
    return response
      .writeHead(given.status, { "content-type": "application/x-amz-json-1.0" })
      .end(await given.text());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // safe: it listens on a port
  vi.stubEnv("AWS_ENDPOINT_URL", `http://127.0.0.1:${port}`);
  return {
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

describe("the stream of the outbox", () => {
  test("dispatches waiting rows once, and finds nothing to do on a retry", async () => {
    const records = await committed("a", "b", "c");
    expect(records).toHaveLength(3);
    later();
    const stream = lambdaOutbox(build());
    expect(await stream({ Records: records }, lasting(30_000))).toEqual({ batchItemFailures: [] });
    expect(await waiting()).toEqual([]);
    expect(
      said("outbox.streamed").reduce((sum, { dispatched }) => sum + Number(dispatched), 0),
    ).toBe(3);
    expect(await stream({ Records: records }, {})).toEqual({ batchItemFailures: [] });
    await app.settled();
    expect(heard.sort()).toEqual(["a", "b", "c"]);
  });

  test("costs one read per shard when everything was dispatched after the commit", async () => {
    const records = await committed("d");
    later();
    await lambdaOutbox(build())({ Records: records }, lasting(30_000));
    const front = await infront(() => undefined);
    expect(
      await lambdaOutbox(build())({ Records: [...records, ...records] }, lasting(30_000)),
    ).toEqual({
      batchItemFailures: [],
    });
    expect(calls).toEqual(["Query"]);
    front.close();
  });

  test("waits for a row that is on its way, and dispatches it if it is still there", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() }); // or a slow machine would find old rows
    const [first, second] = [await committed("e"), await committed("f")];
    const stream = lambdaOutbox(build());
    const begunMs = performance.now();
    const underWay = stream({ Records: [...first, ...second] }, lasting(30_000));
    const another = lambdaOutbox(build())({ Records: [] }, {}); // which has nothing to wait for
    expect(await Promise.race([underWay.then(() => "waits"), another.then(() => "is over")])).toBe(
      "is over",
    );
    expect(await underWay).toEqual({ batchItemFailures: [] });
    expect(performance.now() - begunMs).toBeGreaterThan(1_000);
    expect(await waiting()).toEqual([]);
  });

  test("dispatches nothing when a row that was on its way has arrived in the meantime", async () => {
    const records = await committed("arrived");
    const arrived = Promise.withResolvers<undefined>();
    const front = await infront((operation) => {
      const isAgain = calls.filter((one) => one === "Query").length > 1;
      return operation === "Query" && isAgain ? arrived.promise : undefined;
    });
    const underWay = lambdaOutbox(build())({ Records: records }, lasting(30_000));
    await expect.poll(() => calls, { interval: 5 }).toContain("Query");
    for (const { pk, sk } of await waiting()) {
      await client.send(
        new DeleteItemCommand({ TableName: table, Key: { pk: { S: pk }, sk: { S: sk } } }),
      );
    }
    arrived.resolve(undefined);
    expect(await underWay).toEqual({ batchItemFailures: [] });
    expect(calls).not.toContain("PutEvents");
    expect(said("outbox.streamed")).toEqual([]);
    front.close();
  });

  test("does not wait longer for a row from a clock that is ahead", async () => {
    const records = await committed("g");
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 60_000 });
    expect(await lambdaOutbox(build())({ Records: records }, lasting(30_000))).toEqual({
      batchItemFailures: [],
    });
    expect(await waiting()).toEqual([]);
  });

  test("resumes with the first failed record, and leaves rows alone that are not in its batch", async () => {
    const others = await committed("other");
    const records = await committed("h", "i", "j", "k", "l");
    later();
    const front = await infront(async (operation, body) => {
      if (operation !== "PutEvents" || !/\\"name\\":\\"[ik]\\"/.test(body)) return undefined;
      return {
        status: 400,
        body: JSON.stringify({ __type: "InternalException", message: "not now" }),
      };
    });
    const { batchItemFailures } = await lambdaOutbox(build())(
      { Records: records },
      lasting(30_000),
    );
    const left = (await waiting()).map(({ sk }) => sk);
    const isLeft = (record: DynamoDBRecord) =>
      left.includes(String(record.dynamodb?.Keys?.["sk"]?.S));
    expect({ batchItemFailures }).toEqual(failures(records.find(isLeft)));
    expect(others.every(isLeft)).toBe(true);
    expect(said("event.dispatch_failed").length).toBeGreaterThan(0);
    front.close();
    vi.stubEnv("AWS_ENDPOINT_URL", app.env["AWS_ENDPOINT_URL"]);
    const from = records.findIndex(isLeft);
    expect(
      await lambdaOutbox(build())(
        { Records: [...others, ...records.slice(from)] },
        lasting(30_000),
      ),
    ).toEqual(failures());
    expect(await waiting()).toEqual([]);
    await app.settled();
    expect(heard.filter((name) => !["d", "e", "f", "g"].includes(name)).sort()).toEqual([
      "h",
      "i",
      "j",
      "k",
      "l",
      "other",
    ]);
  });

  test("hands back its records when no time is left to read rows or to wait for one", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() }); // no time passes on a slow machine either
    const records = await committed("m");
    const front = await infront(() => undefined);
    const stream = lambdaOutbox(build());
    expect(await stream({ Records: records }, lasting(900))).toEqual(failures(records[0]));
    expect(calls).toEqual([]);
    expect(await stream({ Records: records }, lasting(1_500))).toEqual(failures(records[0]));
    expect(calls).toEqual(["Query"]);
    front.close();
    vi.stubEnv("AWS_ENDPOINT_URL", app.env["AWS_ENDPOINT_URL"]);
    expect(await waiting()).toHaveLength(1);
    vi.useRealTimers();
    later();
    expect(await lambdaOutbox(build())({ Records: records }, lasting(30_000))).toEqual(failures());
  });

  test("leaves a row to the sweep that is dispatching it, and hands back its record", async () => {
    const records = await committed("n");
    later(15_000);
    let atBus: () => void = () => {};
    const isAtBus = new Promise<void>((resolve) => {
      atBus = resolve;
    });
    let letGo: (answer: undefined) => void = () => {};
    const held = new Promise<undefined>((resolve) => {
      letGo = resolve;
    });
    const front = await infront((operation) => {
      if (operation !== "PutEvents") return undefined;
      atBus();
      return held;
    });
    const sweeping = lambdaSweep(build())();
    await isAtBus;
    expect(await lambdaOutbox(build())({ Records: records }, lasting(30_000))).toEqual(
      failures(records[0]),
    );
    expect(calls.filter((operation) => operation === "PutEvents")).toHaveLength(1);
    letGo(undefined);
    expect(await sweeping).toEqual({ dispatched: 1, left: 0, setAside: 0 });
    expect(await lambdaOutbox(build())({ Records: records }, lasting(30_000))).toEqual(failures());
    front.close();
  });

  test("hands back the records of a shard that it cannot read, and logs a warning", async () => {
    const records = await committed("o");
    later();
    let queries = 0;
    const front = await infront(async (operation) => {
      if (operation !== "Query") return undefined;
      queries += 1;
      if (queries === 2) return undefined;
      return {
        status: 400,
        body: JSON.stringify({ __type: "com.amazonaws#AccessDeniedException", message: "no" }),
      };
    });
    const stream = lambdaOutbox(build());
    expect(await stream({ Records: records }, lasting(30_000))).toEqual(failures(records[0])); // the first read
    expect(await stream({ Records: records }, lasting(30_000))).toEqual(failures(records[0])); // a later one
    expect(said("outbox.stream_failed")).toMatchObject([{ level: "warn" }, { level: "warn" }]);
    front.close();
    vi.stubEnv("AWS_ENDPOINT_URL", app.env["AWS_ENDPOINT_URL"]);
    expect(await lambdaOutbox(build())({ Records: records }, lasting(30_000))).toEqual(failures());
  });

  test("reads all pages of a shard that its rows need", async () => {
    const [pk, at] = ["shard#5", Date.now() - 60_000];
    const many = Array.from({ length: 103 }, (_, n) => ({
      pk,
      sk: `${String(at).padStart(15, "0")}#${String(n).padStart(8, "0")}`,
    }));
    const { db } = await app.ctx({ id: "ann", tenantId: "acme" });
    const text = JSON.stringify({
      kind: "shared",
      type: "drop.fell",
      eventId: "x",
      payload: { name: "x" },
      causedBy: "r",
      origRequestId: "r",
    });
    for (const key of many)
      await db.send(
        new PutCommand({
          TableName: table,
          Item: { ...key, eventId: key.sk, type: "drop.fell", envelope: text },
        }),
      );
    const wanted = [...many.slice(0, 1), ...many.slice(-1)].map(recordOf);
    expect(await lambdaOutbox(build())({ Records: wanted }, lasting(30_000))).toEqual(failures());
    expect(await waiting()).toHaveLength(101);
    expect(await lambdaOutbox(build())({ Records: many.map(recordOf) }, lasting(30_000))).toEqual(
      failures(),
    );
    expect(await waiting()).toEqual([]);
  });
});

describe("a row that the bus never accepts", () => {
  /** Writes rows of one shard a minute ago, in this order, and gives their keys. */
  async function written(...envelopes: unknown[]): Promise<{ pk: string; sk: string }[]> {
    const { db } = await app.ctx({ id: "ann", tenantId: "acme" });
    const atMs = Date.now() - 60_000;
    return Promise.all(
      envelopes.map(async (given, number) => {
        const eventId = randomUUID();
        const key = { pk: "shard#6", sk: `${String(atMs + number).padStart(15, "0")}#${eventId}` };
        const type = "drop.fell";
        const event = { kind: "shared", type, eventId, causedBy: "r", origRequestId: "r" };
        const isName = typeof given === "string" && given.length === 1;
        const envelope = isName
          ? JSON.stringify({ ...event, payload: { name: given, requestId: "r" } })
          : given;
        await db.send(
          new PutCommand({ TableName: table, Item: { ...key, eventId, type, envelope } }),
        );
        return key;
      }),
    );
  }

  /** Refuses a call as a whole where one of its entries is poisoned, and keeps which names went, call by call. */
  async function refusing(poison: string) {
    const went: string[][] = [];
    const front = await infront(async (operation, body) => {
      if (operation !== "PutEvents") return undefined;
      const details = (JSON.parse(body) as { Entries: { Detail: string }[] }).Entries.map(
        ({ Detail }) => Detail,
      );
      if (details.some((detail) => detail.includes(`"name":"${poison}"`))) {
        return {
          status: 400,
          body: JSON.stringify({
            __type: "ValidationException",
            message: "1 validation error detected",
          }),
        };
      }
      went.push(details.flatMap((detail) => /"name":"(.)"/.exec(detail)?.[1] ?? []));
      return undefined;
    });
    return { front, went };
  }

  async function takenAside() {
    const keys = (await waiting()).filter(({ pk }) => pk === "aside");
    for (const { pk, sk } of keys) {
      await client.send(
        new DeleteItemCommand({ TableName: table, Key: { pk: { S: pk }, sk: { S: sk } } }),
      );
    }
    return keys.map(({ sk }) => sk).sort();
  }
  beforeEach(async () => {
    await app.settled(); // of the tests before
    heard = [];
  });
  const asides = (...keys: ({ pk: string; sk: string } | undefined)[]) =>
    keys.map((key) => `${key?.sk}#${key?.pk}`).sort();

  test("is set aside by a sweep, all others of its shard go exactly once, and the next sweep sends nothing", async () => {
    const keys = await written("a", "b", "c", "not JSON", { not: "a text" }, "d");
    const { front, went } = await refusing("b");
    const sweep = lambdaSweep(build());
    expect(await sweep()).toEqual({ dispatched: 3, left: 0, setAside: 3 });
    expect(went.flat()).toEqual(["a", "c", "d"]);
    const putsBefore = calls.filter((operation) => operation === "PutEvents").length;
    expect(await sweep()).toEqual({ dispatched: 0, left: 0, setAside: 0 });
    expect(calls.filter((operation) => operation === "PutEvents")).toHaveLength(putsBefore);
    front.close();
    expect(said("event.set_aside").map(({ reason }) => String(reason).slice(0, 61))).toEqual([
      "ValidationException: 1 validation error detected",
      "MalformedDetail Detail is malformed.",
      "the row is not an event: it has no envelope, type or event ID",
    ]);
    expect(said("event.set_aside")[0]).toMatchObject({
      level: "error",
      type: "drop.fell",
      eventId: keys[1]?.sk.slice(16),
    });
    expect(await takenAside()).toEqual(asides(keys[1], keys[3], keys[4]));
    await app.settled();
    expect(heard.sort()).toEqual(["a", "c", "d"]);
  });

  test("is set aside by the stream too, which logs the move only at debug level", async () => {
    const keys = await written("a", "b", "c");
    const { front, went } = await refusing("b");
    const stream = lambdaOutbox(build());
    expect(await stream({ Records: keys.map(recordOf) }, lasting(30_000))).toEqual(failures());
    expect(went.flat()).toEqual(["a", "c"]);
    expect(said("outbox.streamed")).toMatchObject([{ dispatched: 2, left: 0, setAside: 1 }]);
    front.close();
    const [sk = ""] = await takenAside();
    expect([sk]).toEqual(asides(keys[1]));
    lines = [];
    expect(await stream({ Records: [recordOf({ pk: "aside", sk })] }, lasting(30_000))).toEqual(
      failures(),
    );
    expect(lines).toMatchObject([
      { level: "debug", msg: "outbox.records_skipped", reasons: { "its row was set aside": 1 } },
    ]);
    await app.settled();
  });
});

describe("a record that is not of the outbox", () => {
  const good = recordOf({ pk: "shard#1", sk: "001700000000000#e1" });
  const of = (given: Record<string, unknown>) => ({ ...good, ...given }) as DynamoDBRecord; // as somebody may send it
  const withKeys = (Keys: unknown) => of({ dynamodb: { ...good.dynamodb, Keys } });

  test.each<[string, unknown]>([
    [
      "it is of another table",
      of({ eventSourceARN: "arn:aws:dynamodb:us-east-1:000000000000:table/users/stream/x" }),
    ],
    ["it is of another table", of({ eventSourceARN: 7 })],
    ["its row was not inserted", () => of({ eventName: "MODIFY" })],
    ["its row was not inserted", () => of({ eventName: undefined })],
    ["its keys are not an outbox row's", () => withKeys(undefined)],
    [
      "its keys are not an outbox row's",
      () => withKeys({ pk: { S: "config#system" }, sk: { S: "001700000000000#e1" } }),
    ],
    ["its keys are not an outbox row's", () => withKeys({ pk: { S: "shard#1" }, sk: { N: "1" } })],
    [
      "its keys are not an outbox row's",
      () => withKeys({ pk: { S: "shard#1" }, sk: { S: "tomorrow" } }),
    ],
    ["it has no sequence number", () => of({ dynamodb: { Keys: good.dynamodb?.Keys } })],
  ])("is skipped with a line that gives the reason: %s", async (reason, given) => {
    const made =
      typeof given === "function" ? (given() as DynamoDBRecord) : (given as DynamoDBRecord);
    const arn = `arn:aws:dynamodb:us-east-1:000000000000:table/${table}/stream/x`;
    const record =
      reason === "it is of another table" || !made ? made : { ...made, eventSourceARN: arn };
    expect(await lambdaOutbox(build())({ Records: [record] }, {})).toEqual({
      batchItemFailures: [],
    });
    expect(lines).toMatchObject([
      { level: "warn", msg: "outbox.records_skipped", records: 1, reasons: { [reason]: 1 } },
    ]);
  });

  test.each([
    ["another source", () => of({ eventSource: "aws:sqs" })],
    ["nothing", () => undefined],
    ["null", () => null],
  ])(
    "of %s fails the invocation that has no other, and is skipped beside one of a stream",
    async (_, foreign) => {
      const queue = lambdaOutbox(build());
      const send = (...records: unknown[]) => queue({ Records: records as DynamoDBRecord[] }, {});
      await expect(send(foreign(), foreign())).rejects.toThrow(
        "lambdaOutbox: the event is not of a DynamoDB stream; check the function's trigger",
      );
      expect(await send(foreign(), of({ eventName: "REMOVE" }))).toEqual({ batchItemFailures: [] });
      const reasons = { "it is not of a DynamoDB stream": 1 };
      expect(lines).toMatchObject([{ level: "warn", msg: "outbox.records_skipped", reasons }]);
    },
  );

  test("does not hold up the others, and a removed row is logged only at debug level", async () => {
    const records = await committed("p");
    later();
    const removed = records.map((record) => ({ ...record, eventName: "REMOVE" as const }));
    const stream = lambdaOutbox(build());
    expect(
      await stream(
        { Records: [of({ eventSource: "aws:sqs" }), ...records, ...removed] },
        lasting(30_000),
      ),
    ).toEqual(failures());
    expect(await waiting()).toEqual([]);
    lines = [];
    expect(await stream({ Records: removed }, lasting(30_000))).toEqual(failures());
    expect(lines).toMatchObject([
      { level: "debug", msg: "outbox.records_skipped", reasons: { "its row was removed": 1 } },
    ]);
  });

  test("of a part of a large row is left to that row", async () => {
    const record = recordOf({ pk: "part#3", sk: "001763812800000#0193c1f4#0" });
    lines = [];
    expect(await lambdaOutbox(build())({ Records: [record] }, lasting(30_000))).toEqual(failures());
    const reasons = { "it is a part of a large row": 1 };
    expect(lines).toMatchObject([{ level: "debug", msg: "outbox.records_skipped", reasons }]);
  });

  test("of a job due later is left to the sweep, whatever happened to its row", async () => {
    const records = (["INSERT", "MODIFY", "REMOVE"] as const).map((eventName) => ({
      ...recordOf({ pk: "due#3", sk: "001763812800000#0193c1f4-8f5e-8000-8000-2b7f6c1f5e0a" }),
      eventName,
    }));
    lines = [];
    expect(await lambdaOutbox(build())({ Records: records }, lasting(30_000))).toEqual(failures());
    const reasons = { "it is of a job that is due later": 3 };
    expect(lines).toMatchObject([{ level: "debug", msg: "outbox.records_skipped", reasons }]);
  });

  test("of a part of a large row is left to the record of its head", async () => {
    const part = recordOf({ pk: "part#shard#3#001763812800000#e1", sk: "0" });
    lines = [];
    expect(await lambdaOutbox(build())({ Records: [part] }, lasting(30_000))).toEqual(failures());
    const reasons = { "it is a part of a large row": 1 };
    expect(lines).toMatchObject([{ level: "debug", msg: "outbox.records_skipped", reasons }]);
  });

  test("fails the invocation when the whole event is of another kind", async () => {
    for (const event of [undefined, {}, { Records: "many" }]) {
      await expect(lambdaOutbox(build())(event as never, {})).rejects.toThrow(
        "check the function's trigger",
      );
    }
  });

  test("an outbox table named by its ARN is recognized", async () => {
    const arn = `arn:aws:dynamodb:us-east-1:000000000000:table/${table}`;
    vi.stubEnv("KEELSON_TABLE_OUTBOX", arn);
    const record = { ...good, eventSourceARN: `${arn}/stream/x`, eventName: "REMOVE" as const };
    await lambdaOutbox(build())({ Records: [record] }, {});
    expect(lines).toMatchObject([{ level: "debug" }]);
  });
});
