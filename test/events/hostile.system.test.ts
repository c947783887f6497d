import { isDeepStrictEqual } from "node:util";
import {
  DeleteMessageCommand,
  GetQueueUrlCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { GetCommand } from "@aws-sdk/lib-dynamodb";
import {
  buildServer,
  ConflictError,
  defineFeature,
  PermanentError,
  type PipelineContext,
  type SharedEvent,
} from "keelson";
import { lambdaQueue } from "keelson/lambda";
import { CrashError, startTestApp, type TestApp } from "keelson/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";

const named = z.object({ name: z.string().max(100) });

declare module "keelson" {
  interface Events {
    "mark.made": z.output<typeof named>;
    "mark.shared": z.output<typeof named>;
    "mark.open": Record<string, unknown>;
  }
  interface Jobs {
    "marks.mark.work": z.input<typeof named>;
  }
}

/** One run of a consumer or a job. */
interface Run {
  readonly handler: string;
  readonly name: string;
  readonly user: PipelineContext["user"];
}

let runs: Run[] = [];
/** What a handler does, by the name in the payload, or by handler and name. */
const behaviours = new Map<string, (ctx: PipelineContext, count: number) => unknown>();

async function ran(handler: string, ctx: PipelineContext, name: string): Promise<void> {
  runs.push({ handler, name, user: ctx.user });
  const count = runs.filter((run) => run.handler === handler && run.name === name).length;
  await (behaviours.get(`${handler} ${name}`) ?? behaviours.get(name))?.(ctx, count);
}

const ranOf = (name: string) => runs.filter((run) => run.name === name);

const marks = defineFeature("marks", (r) => {
  r.table("effects", { partitionKey: "pk", tenant: false });
  r.event("mark.made", named);
  r.event("mark.shared", named);
  r.event("mark.open", z.looseObject({}));
  r.on("mark.made", {
    name: "note",
    handler: (ctx, { payload }) => ran("note", ctx, payload.name),
  });
  r.on("mark.shared", {
    name: "first",
    handler: (ctx, { payload }) => ran("first", ctx, payload.name),
  });
  r.on("mark.shared", {
    name: "second",
    handler: (ctx, { payload }) => ran("second", ctx, payload.name),
  });
  r.on("mark.open", {
    name: "look",
    handler: async (ctx, { payload }) => {
      ctx.log.info("looked", { payload });
      await ran("look", ctx, String(Object.getOwnPropertyNames(payload)));
    },
  });
  r.job("mark.work", { input: named, handler: (ctx, { name }) => ran("work", ctx, name) });
  r.channel("fence", { input: named, send: (ctx, { name }) => ran("fence", ctx, name) });
});
const server = () => buildServer({ features: [marks], log: { level: "debug" } });

/** Adds one to what the table has for a name, in the commit. */
const addOne = (ctx: PipelineContext, pk: string) =>
  ctx.commit(
    [
      {
        Update: {
          TableName: "keelson-effects",
          Key: { pk },
          UpdateExpression: "ADD amount :one",
          ExpressionAttributeValues: { ":one": 1 },
        },
      },
    ],
    undefined,
  );

let app: TestApp;
let sqs: SQSClient;
let seen = 0;

async function start(): Promise<void> {
  app = await startTestApp(server());
  seen = 0;
  await app.settled(); // makes the queues
  sqs = new SQSClient({
    endpoint: String(app.env["AWS_ENDPOINT_URL"]),
    region: String(app.env["AWS_REGION"]),
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
}

async function stop(): Promise<void> {
  sqs.destroy();
  await app.close();
}

beforeEach(() => {
  runs = [];
  behaviours.clear();
  seen = app?.logs.length ?? 0;
});

type QueueKind = "events" | "jobs";
const queueNames = {
  events: ["keelson-events", "keelson-events-dead"],
  jobs: ["keelson-jobs.fifo", "keelson-jobs-dead.fifo"],
} as const;

const urlOf = async (name: string) =>
  String((await sqs.send(new GetQueueUrlCommand({ QueueName: name }))).QueueUrl);

async function send(kind: QueueKind, ...bodies: readonly string[]): Promise<void> {
  const QueueUrl = await urlOf(queueNames[kind][0]);
  for (const body of bodies) {
    const ordered =
      kind === "jobs"
        ? { MessageGroupId: crypto.randomUUID(), MessageDeduplicationId: crypto.randomUUID() }
        : {};
    await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: body, ...ordered }));
  }
}

async function receive(name: string): Promise<Message[]> {
  const received = await sqs.send(
    new ReceiveMessageCommand({
      QueueUrl: await urlOf(name),
      MaxNumberOfMessages: 10,
      MessageSystemAttributeNames: ["All"],
    }),
  );
  return received.Messages ?? [];
}

/** Empties a dead-letter queue, and gives what was in it. */
async function deadLetters(kind: QueueKind): Promise<string[]> {
  const [, name] = queueNames[kind];
  const QueueUrl = await urlOf(name);
  const bodies: string[] = [];
  for (;;) {
    const messages = await receive(name);
    if (messages.length === 0) return bodies;
    for (const { Body = "", ReceiptHandle } of messages) {
      bodies.push(Body);
      await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
    }
  }
}

const lines = (msg: string) => app.logs.slice(seen).filter((line) => line["msg"] === msg);
const ended = (kind: string, end: object) =>
  lines(`${kind}.completed`).filter((line) => isDeepStrictEqual({ ...line, ...end }, line));
const [processed, skipped, handedBack] = [
  { outcome: "processed", replayed: false },
  { outcome: "processed", replayed: true },
  { outcome: "handed-back" },
];

const cause = { causedBy: "r1", origRequestId: "r1", tenantId: "acme", userId: "ann" };
const anEvent = (name: string, eventId: string = name): SharedEvent<{ name: string }> => ({
  kind: "shared",
  type: "mark.made",
  eventId,
  payload: { name },
  ...cause,
});
const aJob = (name: string, jobId: string = name) => ({
  jobId,
  name: "marks.mark.work",
  payload: { name },
  ...cause,
});
/** As EventBridge puts it into a queue. */
const onBus = (detail: unknown) =>
  JSON.stringify({ version: "0", "detail-type": "mark.made", source: "keelson", detail });
const event = (name: string, eventId?: string) => onBus(anEvent(name, eventId));
const job = (name: string, jobId?: string) => JSON.stringify(aJob(name, jobId));

/** What only payloads have in this test: no line may show it. */
const marker = "tr0ub4dor";
const nested = (depth: number) => `${'{"n":'.repeat(depth)}1${"}".repeat(depth)}`;
const proto = (members: string) =>
  `{"__proto__":${members},"constructor":{"prototype":${members}}}`;

describe("messages that no keelson producer would send", () => {
  beforeAll(start, 60_000);
  afterAll(stop);

  interface Forgery {
    readonly what: string;
    readonly queue: QueueKind;
    readonly body: string;
    readonly reason: string;
    /** How often it is received before it is given up. */
    readonly receives?: number;
  }
  const forgeries: Forgery[] = [
    ...(["events", "jobs"] as const).flatMap((queue): Forgery[] => [
      { what: "no JSON", queue, body: `${marker}{`, reason: "the message is not JSON" },
      {
        what: "256 KB of garbage",
        queue,
        body: marker.padEnd(262_144, "x"),
        reason: "the message is not JSON",
      },
      {
        what: "a text",
        queue,
        body: JSON.stringify(marker),
        reason: "the message is not an object",
      },
      { what: "null", queue, body: "null", reason: "the message is not an object" },
      { what: "a list", queue, body: `[${event(marker)}]`, reason: "the message is not an object" },
      {
        what: "lists in lists",
        queue,
        body: "[".repeat(131_072) + "]".repeat(131_072),
        reason: "the message is not an object",
      },
      { what: "objects in objects", queue, body: nested(40_000), reason: "its kind is not shared" },
      {
        what: "nothing but prototypes",
        queue,
        body: proto(event(marker)),
        reason: "its kind is not shared",
      },
      { what: "an empty object", queue, body: "{}", reason: "its kind is not shared" },
    ]),
    ...forgedEvents([
      ["a private kind", { kind: "private" }, "its kind is not shared"],
      ["no kind", { kind: undefined }, "its kind is not shared"],
      ["no type", { type: undefined }, "its type is not <entity>.<event name>"],
      ["a type of a prototype", { type: "__proto__" }, "its type is not <entity>.<event name>"],
      [
        "a type that is too long",
        { type: `mark.${marker.repeat(50)}` },
        "its type is not <entity>.<event name>",
      ],
      ["no event ID", { eventId: undefined }, "eventId is not an ID"],
      ["an event ID that is a number", { eventId: 7 }, "eventId is not an ID"],
      ["an event ID with a line feed", { eventId: `${marker}\n` }, "eventId is not an ID"],
      ["an event ID that is too long", { eventId: marker.repeat(50) }, "eventId is not an ID"],
      ["no cause", { causedBy: undefined }, "causedBy is not an ID"],
      ["a cause that is an object", { causedBy: { marker } }, "causedBy is not an ID"],
      ["no original request", { origRequestId: undefined }, "origRequestId is not an ID"],
      ["a user without a tenant", { tenantId: undefined }, "userId comes without a tenantId"],
      [
        "a tenant that is a list",
        { tenantId: [marker] },
        "tenantId is not a string of 1 to 256 characters without control characters",
      ],
      [
        "an empty tenant",
        { tenantId: "" },
        "tenantId is not a string of 1 to 256 characters without control characters",
      ],
      [
        "a user that is too long",
        { userId: marker.repeat(200) },
        "userId is not a string of 1 to 256 characters without control characters",
      ],
      ["no payload", { payload: undefined }, "its payload is not an object"],
      ["a payload that is a text", { payload: marker }, "its payload is not an object"],
      [
        "a payload that does not fit",
        { payload: { name: [marker] } },
        "the payload of mark.made does not fit its schema (name: ",
      ],
      [
        "a payload that is too long",
        { payload: { name: marker.repeat(20_000) } },
        "does not fit its schema (name: ",
      ],
    ]),
    {
      what: "a detail that is no object",
      queue: "events",
      body: onBus(marker),
      reason: "its detail is not an object",
    },
    {
      what: "a payload that is all prototype",
      queue: "events",
      body: event("x").replace('{"name":"x"}', proto(`{"name":"${marker}"}`)),
      reason: "the payload of mark.made does not fit its schema (name: ",
    },
    {
      what: "a payload nested without end",
      queue: "events",
      body: event("x").replace('{"name":"x"}', `{"name":${nested(40_000)}}`),
      reason: "the payload of mark.made does not fit its schema (name: ",
    },
    {
      what: "an event that nobody declares",
      queue: "events",
      body: onBus({ ...anEvent(marker, "forged"), type: "mark.unknown" }),
      reason: "the event mark.unknown is declared by no feature of this server",
      receives: 5,
    },
    ...forgedJobs([
      ["no name", { name: undefined }, "its name is not <feature>.<entity>.<operation>"],
      [
        "a name of a prototype",
        { name: "constructor" },
        "its name is not <feature>.<entity>.<operation>",
      ],
      ["a job ID that is null", { jobId: null }, "jobId is not an ID"],
      ["a job ID with blanks", { jobId: `${marker} ` }, "jobId is not an ID"],
      ["a user without a tenant", { tenantId: undefined }, "userId comes without a tenantId"],
      ["a cause with a NUL", { causedBy: `${marker}\u0000` }, "causedBy is not an ID"],
      ["a payload that is a list", { payload: [marker] }, "its payload is not an object"],
      [
        "a payload that does not fit",
        { payload: { name: { marker } } },
        "the payload of marks.mark.work does not fit its schema (name: ",
      ],
    ]),
    {
      what: "a job that nobody declares",
      queue: "jobs",
      body: JSON.stringify({ ...aJob(marker, "forged"), name: "marks.mark.unknown" }),
      reason: "the job marks.mark.unknown is declared by no feature of this server",
      receives: 5,
    },
    ...forgedDeliveries([
      ["no channel", { channel: undefined }, "its channel is not a name"],
      ["a channel of a prototype", { channel: "__proto__" }, "its channel is not a name"],
      ["no key", { key: undefined }, "its key is not a string"],
      ["no message", { message: undefined }, "its message is not an object"],
      ["a message that is a list", { message: [marker] }, "its message is not an object"],
      [
        "a message that does not fit",
        { message: { name: { marker } } },
        "the message does not fit the channel (name: ",
      ],
    ]),
    {
      ...forgedDelivery(
        "a channel that is not there",
        { channel: "pigeon" },
        "there is no channel pigeon",
      ),
      receives: 5,
    },
  ];

  type Change = readonly [what: string, change: object, reason: string];

  function forgedEvents(changes: readonly Change[]): Forgery[] {
    return changes.map(([what, change, reason]) => ({
      what: `an event with ${what}`,
      queue: "events",
      body: onBus({ ...anEvent(marker, "forged"), ...change }),
      reason,
    }));
  }

  function forgedJobs(changes: readonly Change[]): Forgery[] {
    return changes.map(([what, change, reason]) => ({
      what: `a job with ${what}`,
      queue: "jobs",
      body: JSON.stringify({ ...aJob(marker, "forged"), ...change }),
      reason,
    }));
  }

  function forgedDeliveries(changes: readonly Change[]): Forgery[] {
    return changes.map((change) => forgedDelivery(...change));
  }

  function forgedDelivery(what: string, change: object, reason: string): Forgery {
    const payload = { channel: "fence", key: "k", message: { name: marker }, ...change };
    const body = JSON.stringify({
      jobId: crypto.randomUUID(),
      name: "keelson.delivery.send",
      payload,
      ...cause,
    });
    return { what: `a delivery with ${what}`, queue: "jobs", body, reason };
  }

  test.each(forgeries)(
    "$what in the queue of $queue is dead-lettered with one line that gives the reason, and its batch is processed",
    async ({ queue, body, reason, receives = 1 }) => {
      const good = crypto.randomUUID();
      const make = queue === "events" ? event : job;
      await send(queue, make(`${good}-1`), body, make(`${good}-2`));
      await expect(app.settled()).rejects.toThrow("app.settled: in the dead-letter queue: ");
      expect(runs.map(({ name }) => name).sort()).toEqual([`${good}-1`, `${good}-2`]);
      expect(await deadLetters(queue)).toEqual([body]);
      expect(lines("queue.dead_lettered")).toEqual([
        expect.objectContaining({
          level: "error",
          queue: queueNames[queue][0],
          receives,
          reason: expect.stringContaining(reason),
        }),
      ]);
      expect(lines("queue.retry")).toHaveLength(receives - 1);
      const logged = app.logs.slice(seen).map((line) => JSON.stringify(line));
      for (const line of logged) expect(line.length).toBeLessThan(8_192);
      expect(logged.join("\n")).not.toContain(marker);
    },
  );

  test("unknown members grant no role, and prototype members are ordinary payload", async () => {
    const forged = {
      roles: ["systemAdmin"],
      user: { id: "root" },
      scope: "system",
      __proto__: null,
    };
    await send("events", onBus({ ...anEvent("extra", "extra-e"), ...forged }));
    await send("jobs", JSON.stringify({ ...aJob("extra", "extra-j"), ...forged }));
    await send(
      "events",
      onBus({ ...anEvent("x", "proto"), type: "mark.open" }).replace(
        '{"name":"x"}',
        proto('{"isPolluted":true}'),
      ),
    );
    await app.settled();
    const user = { id: "ann", tenantId: "acme", roles: [], kind: "user" };
    expect(runs).toHaveLength(3);
    expect(runs).toEqual(
      expect.arrayContaining([
        { handler: "note", name: "extra", user },
        { handler: "work", name: "extra", user },
        { handler: "look", name: "constructor", user },
      ]),
    );
    expect({}).not.toHaveProperty("isPolluted");
  });

  test("a deeply nested payload that fits is consumed, and a log line that quotes it stays bounded", async () => {
    const body = onBus({ ...anEvent("x", "nested"), type: "mark.open" }).replace(
      '{"name":"x"}',
      nested(40_000),
    );
    await send("events", body);
    await app.settled();
    expect(ranOf("n")).toHaveLength(1);
    expect(JSON.stringify(lines("looked")).length).toBeLessThan(65_536);
  });

  test("an event that is put into the queue directly, without the bus envelope, is consumed", async () => {
    await send(
      "events",
      JSON.stringify(anEvent("bare")),
      JSON.stringify({ ...anEvent("nobody"), tenantId: undefined, userId: undefined }),
    );
    await app.settled();
    expect(runs.map(({ name, user }) => [name, user.tenantId])).toEqual([
      ["bare", "acme"],
      ["nobody", undefined],
    ]);
  });

  test.each([
    ["nothing", () => undefined],
    ["an object without a prototype", () => Object.create(null)],
    [
      "an error that cannot be read",
      () =>
        Object.defineProperty(new Error("x"), "message", {
          get: () => {
            throw new Error("no");
          },
        }),
    ],
    ["an error without a text", () => Object.assign(new Error("x"), { message: 7 })],
  ])(
    "a consumer that throws %s is retried, and finally dead-lettered with one line",
    async (_, thrown) => {
      const name = crypto.randomUUID();
      behaviours.set(name, () => {
        throw thrown();
      });
      await send("events", event(name));
      await expect(app.settled()).rejects.toThrow("app.settled: in the dead-letter queue: ");
      expect(ranOf(name)).toHaveLength(5);
      expect(await deadLetters("events")).toEqual([event(name)]);
      expect(lines("queue.dead_lettered")).toEqual([
        expect.objectContaining({ eventId: name, reason: expect.any(String) }),
      ]);
    },
  );

  test("a very long error message of a handler makes no long line", async () => {
    behaviours.set("long", () => {
      throw new PermanentError("long ".repeat(100_000));
    });
    await send("events", event("long"));
    await expect(app.settled()).rejects.toThrow("in the dead-letter queue");
    expect(lines("queue.dead_lettered")).toHaveLength(1);
    for (const line of app.logs.slice(seen))
      expect(JSON.stringify(line).length).toBeLessThan(65_536);
    await deadLetters("events");
  });

  test("a message that cannot be dead-lettered is redelivered, and dead-lettered then", async () => {
    // The consumed message sends nothing itself: the next message that is sent is the dead letter.
    app.faults.before("SendMessage", 1).fail("ServiceUnavailable");
    await send("events", "{");
    await expect(app.settled()).rejects.toThrow("in the dead-letter queue: {");
    expect(await deadLetters("events")).toEqual(["{"]);
    expect(lines("queue.dead_letter_failed")).toMatchObject([
      { failure: expect.stringContaining("ServiceUnavailable"), receives: 1 },
    ]);
    expect(lines("queue.dead_lettered")).toMatchObject([{ receives: 2 }]);
  });

  test("a message that cannot be handed back is redelivered anyway", async () => {
    behaviours.set("hidden", (_ctx, count) => {
      if (count === 1) throw new ConflictError("not yet");
    });
    app.faults.before("ChangeMessageVisibility", 1).fail("ServiceUnavailable");
    await send("events", event("hidden"));
    await app.settled();
    expect(ranOf("hidden")).toHaveLength(2);
    expect(lines("queue.hand_back_failed")).toHaveLength(1);
    expect(lines("event.failed")).toMatchObject([
      { level: "warn", status: 409, message: expect.stringContaining("not yet") },
    ]);
  });
});

describe("messages that arrive in any order, and more than once", () => {
  beforeAll(start, 60_000);
  afterAll(stop);

  test("are each processed, in any order", async () => {
    const names = ["r5", "r1", "r4", "r2", "r3"];
    await send("events", ...names.map((name) => event(name)));
    await app.settled();
    expect(runs.map(({ name }) => name).sort()).toEqual(names.toSorted());
  });

  test("are told apart by tenant: one with the same ID from another tenant runs as that tenant", async () => {
    const others = [
      { tenantId: "zenith", userId: "bob" },
      { tenantId: "-" },
      { tenantId: "=acme", userId: undefined },
      { tenantId: undefined, userId: undefined },
    ];
    for (const other of [{}, ...others, ...others, {}]) {
      await send("events", onBus({ ...anEvent("mine", "same-id"), ...other }));
      await send("jobs", JSON.stringify({ ...aJob("mine", "same-id"), ...other }));
    }
    await app.settled();
    for (const handler of ["note", "work"]) {
      const tenants = runs
        .filter((run) => run.handler === handler)
        .map(({ user }) => user.tenantId);
      expect(tenants.toSorted()).toEqual(["-", "=acme", "acme", "zenith", undefined]);
    }
    expect(ended("event", skipped)).toHaveLength(5);
    expect(ended("job", skipped)).toHaveLength(5);
  });

  test("are processed once in one batch, and skipped once they are done", async () => {
    await send("events", event("dup"), event("dup"), event("dup"));
    await send("jobs", job("dup-job"), job("dup-job"));
    await app.settled();
    await send("events", event("dup"));
    await send("jobs", job("dup-job"));
    await app.settled();
    expect(runs.map(({ name }) => name).sort()).toEqual(["dup", "dup-job"]);
  });

  test("are processed again after a failure, and after their claim expires", async () => {
    behaviours.set("fails once", (_ctx, count) => {
      if (count === 1) throw new Error("not yet");
    });
    const [again, old] = [anEvent("fails once", "fails-once"), anEvent("old")];
    await expect(app.deliver(again)).rejects.toThrow("not yet");
    expect(await app.deliver(again)).toBe("processed");
    expect(await app.deliver(again)).toBe("skipped");
    await app.deliver(old);
    app.clock.advance(24 * 3_600_000);
    expect(await app.deliver(old)).toBe("skipped");
    app.clock.advance(26 * 3_600_000);
    expect(await app.deliver(old)).toBe("processed");
    expect([ranOf("fails once"), ranOf("old")].map(({ length }) => length)).toEqual([2, 2]);
  });

  test("wait in their process for a run in progress, and are skipped after it", async () => {
    const gate = Promise.withResolvers<void>();
    behaviours.set("gate", () => gate.promise);
    const deliveries = Promise.all([
      app.deliver(anEvent("gate")),
      app.deliver(anEvent("gate")),
      app.deliver(anEvent("gate")),
    ]);
    await expect.poll(() => ranOf("gate")).toHaveLength(1);
    gate.resolve();
    expect((await deliveries).toSorted()).toEqual(["processed", "skipped", "skipped"]);
    expect(ranOf("gate")).toHaveLength(1);
  });

  test("run again only for the consumer that failed", async () => {
    behaviours.set("second halves", (_ctx, count) => {
      if (count <= 2) throw new Error("the second is not ready");
    });
    await send("events", onBus({ ...anEvent("halves"), type: "mark.shared" }));
    await app.settled();
    expect(runs.map(({ handler }) => handler).sort()).toEqual([
      "first",
      "second",
      "second",
      "second",
    ]);
    expect(ended("event", processed).map((line) => line["handler"])).toEqual([
      "marks.mark.first",
      "marks.mark.second",
    ]);
    expect(lines("event.failed")).toHaveLength(2);
  });

  test("are not returned before every consumer has finished, even if a claim cannot be taken", async () => {
    const gate = Promise.withResolvers<void>();
    behaviours.set("second parted", () => gate.promise);
    // The first consumer's claim fails, and its second attempt as well.
    app.faults.before("PutItem", 1).fail("InternalServerError");
    app.faults.before("PutItem", 3).fail("InternalServerError");
    let isOver = false;
    const delivery = app.deliver({ ...anEvent("parted"), type: "mark.shared" }).finally(() => {
      isOver = true;
    });
    const outcome = expect(delivery).rejects.toThrow("InternalServerError");
    await expect.poll(() => ranOf("parted").map(({ handler }) => handler)).toEqual(["second"]);
    await app.ctx({ id: "ann", tenantId: "acme" }).then((ctx) => amountOf(ctx, "parted")); // a call goes there and back
    const wasOver = isOver;
    gate.resolve();
    await outcome;
    expect(wasOver).toBe(false);
    expect(await app.deliver({ ...anEvent("parted"), type: "mark.shared" })).toBe("processed");
    expect(runs.map(({ handler }) => handler)).toEqual(["second", "first"]);
  });

  test("that are held by a dead process are handed back, and processed once its lease has expired", async () => {
    const gate = Promise.withResolvers<void>();
    behaviours.set("doomed", (_ctx, count) => (count === 1 ? gate.promise : undefined));
    await send("events", event("doomed"));
    const settling = expect(app.settled()).rejects.toBeInstanceOf(CrashError);
    await expect.poll(() => ranOf("doomed")).toHaveLength(1);
    app.faults.before("PutItem", 1).crash();
    await expect(app.deliver(anEvent("crashes"))).rejects.toBeInstanceOf(CrashError);
    await settling;
    gate.resolve();
    expect(await app.deliver(anEvent("doomed"))).toBe("handed-back");
    // A duplicate is there at once; it waits for the rest of the lease, and the skew.
    await send("events", event("doomed"));
    await app.settled();
    expect(ranOf("doomed")).toHaveLength(2);
    for (const line of ended("event", handedBack))
      expect(line["afterMs"]).toBeLessThanOrEqual(32_000);
    expect(ended("event", handedBack).length).toBeGreaterThanOrEqual(1);
    expect(await app.deliver(anEvent("doomed"))).toBe("skipped");
  });
});

async function amountOf(ctx: PipelineContext, pk: string): Promise<unknown> {
  const { Item } = await ctx.db.send(
    new GetCommand({ TableName: "keelson-effects", Key: { pk }, ConsistentRead: true }),
  );
  return Item?.["amount"];
}

describe("a store that fails halfway", () => {
  beforeAll(start, 60_000);
  afterAll(stop);
  const amount = async (pk: string) => amountOf(await app.ctx({ id: "ann", tenantId: "acme" }), pk);

  test("a consumer that throws after its commit counts as processed, and its error is logged", async () => {
    behaviours.set("late", async (ctx) => {
      await addOne(ctx, "late");
      throw new Error("after the commit");
    });
    await send("events", event("late"));
    await app.settled();
    expect(await app.deliver(anEvent("late"))).toBe("skipped");
    expect(ranOf("late")).toHaveLength(1);
    expect(await amount("late")).toBe(1);
    expect(lines("event.threw_after_commit")).toMatchObject([
      { level: "error", message: "after the commit", eventId: "late" },
    ]);
    expect(ended("event", processed)).toHaveLength(1);
  });

  test("a commit whose response is lost has one effect, and its run counts as processed", async () => {
    behaviours.set("lost", (ctx) => addOne(ctx, "lost"));
    app.faults.after("TransactWriteItems", 1).loseAnswer();
    await send("jobs", job("lost"));
    await app.settled();
    expect(await app.deliver(aJob("lost"))).toBe("skipped");
    expect(ranOf("lost")).toHaveLength(1);
    expect(await amount("lost")).toBe(1);
  });

  test("a commit with an unknown outcome is left to its claim: it has one effect", async () => {
    behaviours.set("unknown", (ctx) => addOne(ctx, "unknown"));
    app.faults.after("TransactWriteItems", 1).loseAnswer();
    for (const call of [2, 3]) app.faults.before("TransactWriteItems", call).fail("TimeoutError");
    for (const call of [1, 2, 3]) app.faults.before("GetItem", call).fail("TimeoutError");
    await send("jobs", job("unknown"));
    await app.settled();
    expect(ranOf("unknown")).toHaveLength(1);
    expect(await amount("unknown")).toBe(1);
    expect(lines("job.failed")).toHaveLength(1);
    expect(ended("job", skipped)).toHaveLength(1);
  });

  test("a commit that may still arrive keeps its claim until the lease expires, and is then done again", async () => {
    behaviours.set("on its way", (ctx) => addOne(ctx, "on its way"));
    for (const call of [1, 2, 3])
      app.faults.before("TransactWriteItems", call).fail("TimeoutError");
    const sent = anEvent("on its way", "on-its-way");
    await expect(app.deliver(sent)).rejects.toThrow("TimeoutError");
    expect(await app.deliver(sent)).toBe("handed-back");
    app.clock.advance(33_000);
    expect(await app.deliver(sent)).toBe("processed");
    expect(await amount("on its way")).toBe(1);
  });

  test("a commit that is refused is retried, without waiting for the lease", async () => {
    behaviours.set("refused", (ctx) => addOne(ctx, "refused"));
    app.faults.before("TransactWriteItems", 1).fail("ValidationException");
    await expect(app.deliver(anEvent("refused"))).rejects.toThrow("ValidationException");
    expect(await app.deliver(anEvent("refused"))).toBe("processed");
    expect(await amount("refused")).toBe(1);
  });

  test("a completion that fails once is retried, without repeating the work", async () => {
    app.faults.before("PutItem", 2).fail("InternalServerError");
    expect(await app.deliver(anEvent("noted"))).toBe("processed");
    app.faults.after("PutItem", 2).loseAnswer();
    expect(await app.deliver(anEvent("noted-2"))).toBe("processed");
    expect(await app.deliver(anEvent("noted"))).toBe("skipped");
    expect(await app.deliver(anEvent("noted-2"))).toBe("skipped");
    expect(runs).toHaveLength(2);
  });

  test("a completion that keeps failing is logged, and the work is done again after the lease", async () => {
    for (const call of [2, 3]) app.faults.before("PutItem", call).fail("InternalServerError");
    await send("events", event("unnoted"));
    await app.settled();
    expect(ranOf("unnoted")).toHaveLength(2);
    expect(lines("event.failed")).toMatchObject([
      { message: "the work is done, but could not be recorded; it may run again" },
    ]);
    expect(ended("event", handedBack).length).toBeGreaterThanOrEqual(1);
  });

  test("a release that fails is a warning next to the handler's own error; the handler runs again after the lease", async () => {
    behaviours.set("unreleased", (_ctx, count) => {
      if (count === 1) throw new Error("not yet");
    });
    app.faults.before("DeleteItem", 1).fail("InternalServerError");
    await expect(app.deliver(anEvent("unreleased"))).rejects.toThrow("not yet");
    expect(lines("once.release_failed")).toMatchObject([
      { level: "warn", message: expect.stringContaining("InternalServerError") },
    ]);
    expect(await app.deliver(anEvent("unreleased"))).toBe("handed-back");
    app.clock.advance(33_000);
    expect(await app.deliver(anEvent("unreleased"))).toBe("processed");
  });

  test("a claim that cannot be taken is retried, and nothing runs before it is taken", async () => {
    for (const call of [1, 2]) app.faults.before("PutItem", call).fail("InternalServerError");
    await send("events", event("unclaimed"));
    await app.settled();
    expect(ranOf("unclaimed")).toHaveLength(1);
    expect(lines("queue.retry")).toMatchObject([
      { reason: expect.stringContaining("InternalServerError"), receives: 1 },
    ]);
  });
});

/** The process that is held is a Lambda function: its clock is the machine's, and the app's is moved past its lease. */
describe("a process with a lease", () => {
  const printed: Record<string, unknown>[] = [];
  const said = (msg: string) => printed.filter((line) => line["msg"] === msg);
  beforeEach(async () => {
    await start();
    for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
    printed.length = 0;
    vi.spyOn(process.stdout, "write").mockImplementation((text) => {
      for (const line of String(text).trim().split("\n"))
        printed.push(JSON.parse(line) as Record<string, unknown>);
      return true;
    });
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
    await stop();
  });

  /** Lets a Lambda function consume the one event that is in the queue; gives how many come again. */
  async function consumeElsewhere(): Promise<number> {
    const [message] = await receive(queueNames.events[0]);
    const { MessageId = "", ReceiptHandle = "", Body = "", Attributes = {} } = message ?? {};
    const record = {
      messageId: MessageId,
      receiptHandle: ReceiptHandle,
      body: Body,
      attributes: Attributes as never, // as SQS gives them
      messageAttributes: {},
      md5OfBody: "",
      eventSource: "aws:sqs",
      eventSourceARN: `arn:aws:sqs:us-east-1:000000000000:${queueNames.events[0]}`,
      awsRegion: "us-east-1",
    };
    const { batchItemFailures } = await lambdaQueue(server())(
      { Records: [record] },
      { getRemainingTimeInMillis: () => 30_000 },
    );
    return batchItemFailures.length;
  }

  /** Holds the first run of a name; gives what lets it go on. */
  function hold(name: string, then?: (ctx: PipelineContext) => unknown): () => void {
    const gate = Promise.withResolvers<void>();
    behaviours.set(name, async (ctx, count) => {
      if (count === 1) await gate.promise;
      await then?.(ctx);
    });
    return gate.resolve;
  }

  test("keeps the message to itself until the lease expires: others hand it back", async () => {
    const letGo = hold("busy");
    await send("events", event("busy"));
    const elsewhere = consumeElsewhere();
    await expect.poll(() => ranOf("busy")).toHaveLength(1);
    expect(await app.deliver(anEvent("busy"))).toBe("handed-back");
    letGo();
    expect(await elsewhere).toBe(0);
    expect(await app.deliver(anEvent("busy"))).toBe("skipped");
    expect(ranOf("busy")).toHaveLength(1);
  });

  test("cannot commit after another process has taken over: there is one effect", async () => {
    const letGo = hold("fenced", (ctx) => addOne(ctx, "fenced"));
    await send("events", event("fenced"));
    const elsewhere = consumeElsewhere();
    await expect.poll(() => ranOf("fenced")).toHaveLength(1);
    app.clock.advance(33_000);
    expect(await app.deliver(anEvent("fenced"))).toBe("processed");
    letGo();
    expect(await elsewhere).toBe(1);
    expect(said("event.failed")).toMatchObject([{ error: "request_in_progress" }]);
    await app.settled();
    expect(ranOf("fenced")).toHaveLength(2);
    expect(await amountOf(await app.ctx({ id: "ann", tenantId: "acme" }), "fenced")).toBe(1);
  });

  test("cannot complete or release a claim that another process took over, and hands its message back", async () => {
    const letGo = hold("late");
    await send("events", event("late"));
    const elsewhere = consumeElsewhere();
    await expect.poll(() => ranOf("late")).toHaveLength(1);
    app.clock.advance(33_000);
    expect(await app.deliver(anEvent("late"))).toBe("processed");
    letGo();
    expect(await elsewhere).toBe(1);
    expect(said("event.fenced")).toMatchObject([{ level: "warn", eventId: "late" }]);
    await app.settled();
    expect(ranOf("late")).toHaveLength(2);
    expect(ended("event", skipped)).toHaveLength(1);
  });
});
