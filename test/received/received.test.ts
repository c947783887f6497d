import { EventBridgeClient, PutEventsCommand } from "@aws-sdk/client-eventbridge";
import {
  GetQueueUrlCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { buildServer } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { storedEvent, uploads, world } from "./fixture.ts";

const initial = { ...world };
let app: TestApp;
let bus: EventBridgeClient;
let queues: SQSClient;

beforeAll(async () => {
  app = await startTestApp(
    buildServer({
      features: [uploads],
      keyRing: { parameter: "/uploads/key-ring" },
      messages: { proof: "require" },
    }),
  );
  const { AWS_ENDPOINT_URL: endpoint = "", AWS_REGION: region = "" } = app.env;
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  bus = new EventBridgeClient({ endpoint, region, credentials });
  queues = new SQSClient({ endpoint, region, credentials });
});
beforeEach(() => {
  Object.assign(world, initial, { runs: [] });
});
afterAll(async () => {
  bus.destroy();
  queues.destroy();
  await app.close();
});

/** Puts an event as its sender does, and consumes all that follows. */
async function put(source: string, type: string, detail: unknown, EventBusName?: string) {
  const entry = { Source: source, DetailType: type, Detail: JSON.stringify(detail), EventBusName };
  const { Entries: [answer] = [] } = await bus.send(new PutEventsCommand({ Entries: [entry] }));
  expect(answer?.ErrorCode).toBeUndefined();
  await app.settled();
  return String(answer?.EventId);
}

/** Sends a message into the queue of events of others. */
async function send(body: unknown) {
  const QueueName = app.env["KEELSON_RECEIVED_QUEUE"] ?? "keelson-received";
  const { QueueUrl } = await queues.send(new GetQueueUrlCommand({ QueueName }));
  const MessageBody = typeof body === "string" ? body : JSON.stringify(body);
  await queues.send(new SendMessageCommand({ QueueUrl, MessageBody }));
}

const linesOf = (...names: readonly string[]) =>
  app.logs.filter(({ msg }) => names.includes(String(msg)));

test("an event on the default bus runs each of its receivers once, with the tenant that it names", async () => {
  world.handle = async (ctx, event) => {
    const { key } = event.detail as { key: string };
    await ctx.enqueue(uploads.scan, { key: `${ctx.user.tenantId ?? "nobody"} ${key}` });
  };
  const id = await put("aws.s3", "Object Created", { bucket: "b", key: "acme/1", size: 3 });
  expect(world.runs).toHaveLength(4);
  expect(world.runs).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ by: "stored", id, tenantId: "acme" }),
      expect.objectContaining({ by: "audited", id, tenantId: undefined }),
      { by: "scan", id: "acme acme/1", tenantId: "acme", event: undefined },
      { by: "scan", id: "nobody acme/1", tenantId: undefined, event: undefined },
    ]),
  );
  // The schema's output, without what it does not know.
  expect(world.runs[0]?.event).toMatchObject({
    ...{ id, source: "aws.s3", detailType: "Object Created" },
    detail: { bucket: "b", key: "acme/1" },
  });
  expect(Object.keys(world.runs[0]?.event?.detail as object)).toEqual(["bucket", "key"]);
  expect(linesOf("event.completed").slice(-2)).toMatchObject([
    {
      event: "aws.s3 Object Created",
      eventId: id,
      origRequestId: id,
      outcome: "processed",
      attempt: 1,
    },
    {
      event: "aws.s3 Object Created",
      eventId: id,
      origRequestId: id,
      outcome: "processed",
      attempt: 1,
    },
  ]);
  expect(app.jobs.slice(-2)).toMatchObject([
    { causedBy: id, origRequestId: id },
    { causedBy: id, origRequestId: id },
  ]);
});

test("a receiver that changes its event changes it for no other", async () => {
  world.handle = async (_ctx, { resources }) => void (resources as string[]).push("changed");
  await put("aws.s3", "Object Created", { bucket: "b", key: "acme/9" });
  expect(world.runs.map(({ event }) => event?.resources)).toEqual([["changed"], ["changed"]]);
});

test("an event of another type or source, or on another bus, runs nothing", async () => {
  await put("aws.s3", "Object Deleted", { bucket: "b", key: "acme/2" });
  await put("evil.s3", "Object Created", { bucket: "b", key: "acme/2" });
  await put("billing", "Payment Settled", { reference: "r" });
  expect(world.runs).toEqual([]);
});

test("an event on another bus runs its receiver, once for each ID that the receiver takes", async () => {
  await put("billing", "Payment Settled", { reference: "r1" }, "partners");
  await put("billing", "Payment Settled", { reference: "r1" }, "partners");
  await put("billing", "Payment Settled", { reference: "r2" }, "partners");
  expect(world.runs.map(({ event }) => event?.detail)).toEqual([
    { reference: "r1" },
    { reference: "r2" },
  ]);
});

test("a message that comes again runs nothing", async () => {
  const event = storedEvent("acme/3");
  await send(event);
  await app.settled();
  expect(world.runs).toHaveLength(2);
  await send(event);
  await app.settled();
  expect(await app.deliver(event)).toBe("skipped");
  expect(world.runs).toHaveLength(2);
});

test("an event whose tenant is undefined does not run, and is gone", async () => {
  world.tenant = () => undefined;
  expect(await app.deliver(storedEvent("acme/4"))).toBe("processed"); // by the other receiver
  expect(world.runs.map(({ by }) => by)).toEqual(["audited"]);
  expect(linesOf("event.without_tenant").at(-1)).toMatchObject({
    handler: "uploads.upload.stored",
  });
});

test("a run that fails is repeated, without the receiver that is done", async () => {
  let failures = 2;
  world.handle = async (ctx) => {
    if (ctx.user.tenantId !== undefined && failures-- > 0) throw new Error("not yet");
  };
  await put("aws.s3", "Object Created", { bucket: "b", key: "acme/5" });
  expect(world.runs.map(({ by }) => by).sort()).toEqual(["audited", "stored", "stored", "stored"]);
});

const envelope = (type: string, more: object = {}) => ({
  ...{ kind: "shared", type, eventId: crypto.randomUUID(), causedBy: "c1", origRequestId: "r1" },
  ...{ tenantId: "acme", payload: { key: "forged" } },
  ...more,
});

test.each<[string, unknown, string]>([
  ["an envelope of ours", envelope("upload.noted"), "id is not an ID"],
  [
    "an envelope of ours in the wrapper of our bus",
    storedEvent("x", {
      ...{ source: "keelson", "detail-type": "upload.noted" },
      detail: envelope("upload.noted"),
    }),
    'the event "upload.noted" of "keelson" is received by no feature of this server',
  ],
  [
    "a job of ours",
    {
      jobId: "j1",
      name: "uploads.upload.scan",
      payload: { key: "forged" },
      causedBy: "c",
      origRequestId: "r",
    },
    "id is not an ID",
  ],
  ["what is not JSON", "{", "the event is not JSON"],
  ["a list", "[]", "the event is not an object"],
  ["an ID that is no ID", storedEvent("acme/6", { id: "a b" }), "id is not an ID"],
  ["a detail that is a string", storedEvent("", { detail: "x" }), "its detail is not an object"],
  ["no source", storedEvent("", { source: undefined }), "its source is not a string"],
  ["a long time", storedEvent("", { time: "x".repeat(513) }), "its time is not a string"],
  [
    "resources that are no list",
    storedEvent("", { resources: {} }),
    "its resources are not a list",
  ],
  [
    "a resource that is no string",
    storedEvent("", { resources: [1] }),
    "its resources are not a list",
  ],
  ["deep JSON", `{"detail":${"[".repeat(70)}${"]".repeat(70)}}`, "too much JSON: depth beyond 64"],
  [
    "a detail that does not fit",
    storedEvent("", { detail: { bucket: "b" } }),
    "the detail for uploads.upload.stored does not fit its schema (key: ",
  ],
])(
  "from the queue of events of others, %s is a dead letter and runs nothing",
  async (_what, body, reason) => {
    await send(body);
    await expect(app.settled()).rejects.toThrow("in the dead-letter queue");
    expect(linesOf("queue.dead_lettered").at(-1)?.["reason"]).toContain(reason);
    expect(world.runs).toEqual([]);
    const QueueName = `${app.env["KEELSON_RECEIVED_QUEUE"] ?? "keelson-received"}-dead`;
    const { QueueUrl } = await queues.send(new GetQueueUrlCommand({ QueueName }));
    const dead = await queues.send(new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 0 }));
    expect(dead.Messages).not.toEqual([]);
  },
);

test.each([
  ["a tenant that is no tenant", () => ({ tenant: () => "a\n" }), "its tenant is"],
  ["a tenant that is no string", () => ({ tenant: () => 7 }), "its tenant is 7; return a string"],
])("%s permanently fails the receiver, and not the others", async (_what, change, reason) => {
  Object.assign(world, change());
  await expect(app.deliver(storedEvent("acme/7"))).rejects.toThrow(reason);
  expect(world.runs.map(({ by }) => by)).toEqual(["audited"]);
});

test.each([[""], [7], [null]])("the ID %j permanently fails", async (reference) => {
  const event = { source: "billing", "detail-type": "Payment Settled", detail: { reference } };
  await expect(app.deliver(event)).rejects.toThrow("its id is");
});

test("the handler is not the system, and without a tenant reaches no tenant's rows", async () => {
  const failures: string[] = [];
  world.handle = async (ctx) => {
    expect(ctx.user).toMatchObject({ id: undefined, tenantId: undefined, roles: [] });
    for (const attempt of [() => ctx.acrossTenants("because"), () => uploads.table.key(ctx, "a")])
      try {
        attempt();
      } catch (error) {
        failures.push(String(error));
      }
  };
  await put("billing", "Payment Settled", { reference: "r9" }, "partners");
  expect(failures).toHaveLength(2);
});

test("a run that a rate limit refuses waits without an attempt", async () => {
  const names = ["a", "b", "c", "d", "e", "f", "g"];
  for (const name of names)
    await send(
      storedEvent("", { source: "imports", "detail-type": "Import Asked", detail: { name } }),
    );
  await app.settled();
  const done = world.runs.map(({ event }) => event?.detail);
  expect(done).toHaveLength(names.length);
  expect(done).toEqual(expect.arrayContaining(names.map((name) => ({ name }))));
  const [first] = linesOf("event.limited");
  expect(first).toMatchObject({ handler: "uploads.import.asked" });
  expect(linesOf("event.completed").at(-1)).toMatchObject({ attempt: 1, outcome: "processed" });
});
