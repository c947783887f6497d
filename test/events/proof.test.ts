import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import {
  GetQueueUrlCommand,
  PurgeQueueCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { PutParameterCommand, SSMClient } from "@aws-sdk/client-ssm";
import {
  access,
  buildServer,
  createTenantConfig,
  defineFeature,
  type ServerOptions,
  type SharedEvent,
} from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { type KeyRingText, newRingKey, retiredKey } from "../../src/base/secrets/key-ring.ts";

declare module "keelson" {
  interface Events {
    "seal.made": { name: string };
  }
  interface Jobs {
    "seals.seal.press": { name: string };
  }
}

let runs: string[] = [];
const named = z.object({ name: z.string() });
const seals = defineFeature("seals", (r) => {
  const everybody = { read: access.authenticated, write: access.authenticated };
  const config = r.config({
    keys: { hook: createTenantConfig("text", { encrypted: true, access: everybody }) },
  });
  r.event("seal.made", named);
  r.on("seal.made", {
    name: "note",
    handler: async (ctx, { payload }) => {
      runs.push(`event ${payload.name} of ${ctx.user.tenantId}`);
      await ctx.enqueue("seals.seal.press", payload);
    },
  });
  r.job("seal.press", {
    input: named,
    handler: async (ctx, { name }) => {
      runs.push(`job ${name} of ${ctx.user.tenantId}`);
      await ctx.delivery.send("webhook", { url: hook, body: { name } });
    },
  });
  r.write("seal.make", {
    route: "POST /seals",
    access: access.authenticated,
    input: named,
    handler: (ctx, input) => ctx.publish("seal.made", input),
  });
  const write = { access: access.authenticated, input: named };
  const tell = (name: string) => ({ url: hook, body: { name } });
  r.write("seal.tell", {
    ...write,
    route: "POST /tell",
    handler: (ctx, { name }) => ctx.delivery.send("webhook", tell(name)),
  });
  r.write("seal.enqueue", {
    ...write,
    route: "POST /press",
    handler: (ctx, input) => ctx.enqueue("seals.seal.press", input),
  });
  return { config };
});
const webhook = { secret: seals.config.hook, allowHttp: true, allowPrivate: true };
const build = (options: Partial<ServerOptions>) =>
  buildServer({ features: [seals], delivery: { webhook }, log: { level: "debug" }, ...options });

const receiver = createServer((request, response) => {
  received.push(request.headers);
  request.resume();
  response.end();
});
let received: IncomingHttpHeaders[] = [];
let hook = "";
let app: TestApp;
let sqs: SQSClient;
const queues = { events: "keelson-events", jobs: "keelson-jobs" } as const;
const ann = { id: "ann", tenantId: "acme" };

beforeAll(async () => {
  receiver.listen(0, "127.0.0.1");
  await once(receiver, "listening");
  hook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`; // safe: it listens on a port
});
afterAll(() => void receiver.close());
beforeEach(() => {
  runs = [];
  received = [];
});

const account = () => ({
  endpoint: String(app.env["AWS_ENDPOINT_URL"]),
  region: "us-east-1",
  credentials: { accessKeyId: "test", secretAccessKey: "test" },
});

async function start(
  options: Partial<ServerOptions>,
  secureParameters: Record<string, string> = {},
): Promise<void> {
  app = await startTestApp(build(options), { secureParameters });
  await app.settled(); // makes the queues
  sqs = new SQSClient(account());
  const response = await app.fetch(`/config/${encodeURIComponent(seals.config.hook.id)}`, {
    method: "PUT",
    as: ann,
    body: { value: "the secret of acme" },
  });
  expect(response.status).toBe(200);
}

async function stop(): Promise<void> {
  sqs.destroy();
  await app.close();
}

const urlOf = async (name: string) =>
  String((await sqs.send(new GetQueueUrlCommand({ QueueName: name }))).QueueUrl);

async function send(kind: keyof typeof queues, body: string): Promise<void> {
  const QueueUrl = await urlOf(queues[kind]);
  await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: body }));
}

/** What lies in a queue, without being taken. */
async function bodiesIn(name: string): Promise<string[]> {
  const command = new ReceiveMessageCommand({
    QueueUrl: await urlOf(name),
    MaxNumberOfMessages: 10,
    VisibilityTimeout: 0,
  });
  return ((await sqs.send(command)).Messages ?? []).map(({ Body = "" }) => Body);
}

/** The message of a delivery that waits in its queue. */
async function told(name: string): Promise<string> {
  const response = await app.fetch("/tell", { body: { name }, as: ann });
  expect(response.status).toBe(200);
  const [body = ""] = await bodiesIn(queues.jobs);
  const { jobId } = JSON.parse(body) as { jobId: string };
  expect(await response.json()).toEqual({ deliveryId: jobId });
  return body;
}

const lines = (msg: string) => app.logs.filter((line) => line["msg"] === msg);

/** Messages as version 0.1.0 has written them, and as anybody may who can write to a queue. */
const before = {
  event: (name: string) =>
    `{"version":"0","id":"b1","detail-type":"seal.made","source":"keelson","account":"1","resources":[],"detail":{"kind":"shared","type":"seal.made","eventId":"${name}","payload":{"name":"${name}","requestId":"r1"},"causedBy":"r1","origRequestId":"r1","tenantId":"acme","userId":"ann"}}`,
  job: (name: string) =>
    `{"jobId":"${name}","name":"seals.seal.press","payload":{"name":"${name}"},"causedBy":"e1","origRequestId":"r1","tenantId":"acme","userId":"ann"}`,
  delivery: (id: string) =>
    `{"jobId":"${id}","name":"keelson.delivery.send","payload":{"channel":"webhook","message":{"url":"${hook}","body":{"paid":true}},"key":"${id}"},"causedBy":"j1","origRequestId":"r1","tenantId":"acme"}`,
};

describe.each<[string, Partial<ServerOptions>, string[]]>([
  ["off", { messages: { proof: "off" } }, []],
  ["sign, the default where there is a ring,", {}, ["event", "job", "job"]],
])("with proofs %s", (_what, options, warned) => {
  beforeAll(() => start(options), 60_000);
  afterAll(stop);

  test("messages of the previous version are accepted, and a forged delivery is signed with its tenant's secret", async () => {
    await send("events", before.event("old-event"));
    await send("jobs", before.job("old-job"));
    await send("jobs", before.delivery("forged"));
    await app.settled();
    expect(runs.filter((run) => !run.startsWith("job old-event")).sort()).toEqual([
      "event old-event of acme",
      "job old-job of acme",
    ]);
    expect(
      received.find((headers) => headers["webhook-id"] === "forged")?.["webhook-signature"],
    ).toMatch(/^v1,/);
    const kinds = lines("message.proof_missing").map((line) =>
      line["eventId"] === undefined ? "job" : "event",
    );
    // The second job of a minute is counted, and not said.
    expect(kinds.sort()).toEqual(warned.slice(0, 2));
  });

  test("each part of a chain completes", async () => {
    expect((await app.fetch("/seals", { body: { name: "chain" }, as: ann })).status).toBe(204);
    await app.settled();
    expect(runs).toEqual(["event chain of acme", "job chain of acme"]);
    expect(received).toHaveLength(1);
    expect(lines("message.proof_invalid")).toEqual([]);
  });
});

describe("with required proofs", () => {
  beforeAll(() => start({ messages: { proof: "require" } }), 60_000);
  afterAll(stop);
  afterEach(async () => {
    for (const name of ["keelson-events-dead", "keelson-jobs-dead"]) {
      await sqs.send(new PurgeQueueCommand({ QueueUrl: await urlOf(name) }));
    }
  });

  test("each part of a chain completes, through the bus and both queues, also when delivered twice", async () => {
    await app.fetch("/seals", { body: { name: "ü\u2028 1.0" }, as: ann });
    await app.settled();
    expect(runs).toEqual(["event ü\u2028 1.0 of acme", "job ü\u2028 1.0 of acme"]);
    expect(received).toHaveLength(1);
    const event = app.events.at(-1) as SharedEvent; // safe: one was published
    expect(event).not.toHaveProperty("proof");
    expect(await app.deliver(event)).toBe("skipped");
    expect(await app.deliver({ ...event, eventId: "another" })).toBe("processed");
    await app.settled();
  });

  test.each<[string, keyof typeof queues, () => string]>([
    ["an event of the version before", "events", () => before.event("old-event")],
    ["a job of the version before", "jobs", () => before.job("old-job")],
    ["a forged delivery", "jobs", () => before.delivery("forged")],
  ])("%s is refused at once, with one line that gives the reason", async (what, kind, body) => {
    const seen = app.logs.length;
    await send(kind, body());
    await expect(app.settled()).rejects.toThrow("in the dead-letter queue");
    expect([what, runs, received]).toEqual([what, [], []]);
    const said = app.logs.slice(seen).filter((line) => line["msg"] === "queue.dead_lettered");
    expect(said).toEqual([
      expect.objectContaining({
        reason: "it has no proof",
        messageId: expect.any(String),
        receives: 1,
      }),
    ]);
  });

  test.each<[string, (name: string) => string]>([
    ["for another tenant", (text) => text.replaceAll('"tenantId":"acme"', '"tenantId":"globex"')],
    [
      "with another address",
      (text) => text.replace(/"url":"[^"]*"/, '"url":"https://evil.example/"'),
    ],
    [
      "as the system's",
      (text) => text.replace('"tenantId":"acme","userId":"ann"', '"originator":"system"'),
    ],
    [
      "as created by the system",
      (text) => text.replace('"tenantId":"acme"', '"originator":"system","tenantId":"acme"'),
    ],
    [
      "as another job",
      (text) => text.replace('"name":"keelson.delivery.send"', '"name":"seals.seal.press"'),
    ],
  ])(
    "a delivery that was copied from the queue and put back %s is refused",
    async (_what, forge) => {
      const name = crypto.randomUUID();
      const body = await told(name);
      expect(body).toContain(name);
      await app.settled();
      expect(received).toHaveLength(1);
      expect(forge(body)).not.toBe(body);
      await send("jobs", forge(body));
      await expect(app.settled()).rejects.toThrow("in the dead-letter queue");
      const line = lines("queue.dead_lettered").at(-1);
      expect(line).toMatchObject({ reason: "its proof is not of this message" });
      expect(JSON.stringify(app.logs)).not.toContain(
        (JSON.parse(body) as { proof: { mac: string } }).proof.mac,
      );
      expect(received).toHaveLength(1);
    },
  );

  test("a message that is delivered again two days later is processed again, despite its proof", async () => {
    const name = crypto.randomUUID();
    const body = await told(name);
    await app.settled();
    await send("jobs", body);
    await app.settled();
    expect(received).toHaveLength(1);
    app.clock.advance(2 * 86_400_000);
    await send("jobs", body);
    await app.settled();
    expect(received).toHaveLength(2);
  });

  test.each<[string, keyof typeof queues, () => Promise<string>]>([
    [
      "a job",
      "events",
      async () => {
        const body = await told("astray");
        await app.settled();
        return body;
      },
    ],
    ["an event", "jobs", async () => before.event("stray")],
  ])("%s in the queue of %s is refused, proven or not", async (what, kind, body) => {
    await send(kind, await body());
    await expect(app.settled()).rejects.toThrow("in the dead-letter queue");
    expect(lines("queue.dead_lettered").at(-1)).toMatchObject({
      reason: `${what} is not taken from the queue of ${kind}`,
    });
  });
});

describe("with a rotating key ring", () => {
  const parameter = "/seals/ring";
  const keys = { k1: newRingKey(), k2: newRingKey() };
  const text = (ring: KeyRingText) => JSON.stringify(ring);
  const put = async (ring: KeyRingText) => {
    const ssm = new SSMClient(account());
    await ssm.send(
      new PutParameterCommand({
        Name: parameter,
        Value: text(ring),
        Type: "SecureString",
        Overwrite: true,
      }),
    );
    ssm.destroy();
  };
  const press = async (name: string) =>
    expect((await app.fetch("/press", { body: { name }, as: ann })).status).toBe(200);

  beforeAll(() =>
    start(
      { keyRing: { parameter }, messages: { proof: "require" } },
      { [parameter]: text({ active: "k1", keys: { k1: keys.k1 } }) },
    ),
  );
  afterAll(stop);

  test("messages are accepted throughout a rotation, and refused as soon as a removed key is forgotten", async () => {
    const keyOf = async () => {
      const [body = "{}"] = await bodiesIn(queues.jobs);
      return (JSON.parse(body) as { proof?: { key: string } }).proof?.key;
    };
    await press("before");
    await put({ active: "k2", keys });
    app.clock.advance(300_000);
    await app.settled();
    await press("between");
    expect(await keyOf()).toBe("k2");
    await app.settled();

    await put({ active: "k1", keys });
    app.clock.advance(300_000);
    await press("last");
    expect(await keyOf()).toBe("k1");
    const retired = { k1: retiredKey(keys.k1, app.clock.now()) };
    await put({ active: "k2", keys: { k2: keys.k2 }, retired });
    app.clock.advance(300_000);
    await app.settled();
    expect(runs).toEqual(["before", "between", "last"].map((name) => `job ${name} of acme`));

    await put({ active: "k1", keys });
    app.clock.advance(300_000);
    await press("leaked");
    await put({ active: "k2", keys: { k2: keys.k2 } });
    app.clock.advance(300_000);
    await expect(app.settled()).rejects.toThrow("in the dead-letter queue");
    expect(lines("queue.dead_lettered")).toMatchObject([
      {
        reason: "its proof names the key k1, which the key ring has not",
        jobId: expect.any(String),
        tenantId: "acme",
      },
    ]);
  });
});
