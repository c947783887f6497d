import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server as HttpServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import {
  DeleteMessageCommand,
  GetQueueUrlCommand,
  ReceiveMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
} from "vitest";
import { z } from "zod";
import { type DnsAnswer, startDnsServer } from "../../../test/support/dns-server.ts";
import { PermanentError } from "../../base/errors/errors.ts";
import { access } from "../../base/identity/access.ts";
import { createRandomDigits, RunTrace } from "../../base/request/trace.ts";
import { createTenantConfig } from "../../parts/config/declare/declaration.ts";
import { type Caller, startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { DeliveryOptions } from "../registry/options.ts";
import { buildServer } from "../server/server.ts";
import { builtInChannels, createDeliveryJob } from "./channels.ts";
import { createNameLookups } from "./name-lookup.ts";

/** What the next write does. */
let work: (ctx: PipelineContext) => unknown = () => undefined;
const alarms = defineFeature("alarms", (r) => {
  const config = r.config({
    keys: {
      "webhook-secret": createTenantConfig("text", { encrypted: true, read: access.authenticated }),
    },
  });
  // A channel of its own makes the server one with a queue.
  r.channel("bell", { input: z.object({}), send: () => undefined });
  r.write("alarm.raise", {
    route: "POST /raise",
    access: access.everyone,
    handler: async (ctx) => {
      await work(ctx);
      return { raised: true };
    },
  });
  return { config };
});
const secretKey = alarms.config["webhook-secret"];
const build = (delivery?: DeliveryOptions) =>
  buildServer({
    features: [alarms],
    log: { level: "debug" },
    ...(delivery === undefined ? {} : { delivery }),
  });

const ann: Caller = { id: "ann", tenantId: "acme", roles: ["admin"] };
const bob: Caller = { id: "bob", tenantId: "zenith", roles: ["admin"] };
const eve: Caller = { id: "eve", tenantId: "evil", roles: ["admin"] };

/** A request as the receiver got it. */
interface Received {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

let app: TestApp;
let receiver: HttpServer;
let hook: string;
let received: Received[] = [];
/** The statuses of the next answers; 200 after them, and no answer for 0. */
let statuses: number[] = [];
let seen = 0;

beforeAll(async () => {
  receiver = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method, url: path, headers } = request;
    received.push({ method, path, headers, body: Buffer.concat(chunks).toString() });
    const status = statuses.shift() ?? 200;
    if (status !== 0)
      response.writeHead(status, status === 302 ? { location: "/elsewhere" } : {}).end("received");
  });
  receiver.listen(0, "127.0.0.1");
  await once(receiver, "listening");
  hook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook?token=of-the-url`; // safe: it listens on a port
});
afterAll(() => {
  receiver.closeAllConnections();
  receiver.close();
});
beforeEach(() => {
  received = [];
  statuses = [];
});

async function start(delivery?: DeliveryOptions): Promise<void> {
  app = await startTestApp(build(delivery));
  await app.settled(); // makes the queues
}

const raise = (as?: Caller) =>
  app.fetch("/raise", { body: {}, ...(as === undefined ? {} : { as }) });
const lines = (msg: string) => app.logs.slice(seen).filter((line) => line["msg"] === msg);
const refusal = "app.settled: in the dead-letter queue: ";

function sends(body: Readonly<Record<string, unknown>>, url = hook): void {
  work = (ctx) => ctx.delivery.send("webhook", { url, body });
}

/** Whether a request is signed with a secret, reckoned as https://www.standardwebhooks.com has it. */
function isSigned({ headers, body }: Received, key: Buffer): boolean {
  const content = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
  return (
    headers["webhook-signature"] ===
    `v1,${createHmac("sha256", key).update(content).digest("base64")}`
  );
}

async function withSqs<Result>(run: (sqs: SQSClient) => Promise<Result>): Promise<Result> {
  const sqs = new SQSClient({
    endpoint: String(app.env["AWS_ENDPOINT_URL"]),
    region: String(app.env["AWS_REGION"]),
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
  try {
    return await run(sqs);
  } finally {
    sqs.destroy();
  }
}

/** The bodies that lie in a queue, and are left there or not. */
function bodiesOf(name: string, { isEmptied }: { readonly isEmptied: boolean }): Promise<string[]> {
  return withSqs(async (sqs) => {
    const { QueueUrl } = await sqs.send(new GetQueueUrlCommand({ QueueName: name }));
    const bodies: string[] = [];
    const VisibilityTimeout = isEmptied ? 30 : 0;
    const { Messages = [] } = await sqs.send(
      new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10, VisibilityTimeout }),
    );
    for (const { Body = "", ReceiptHandle } of Messages) {
      bodies.push(Body);
      if (isEmptied) await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
    }
    return bodies;
  });
}

const [jobs, deadJobs] = ["keelson-jobs", "keelson-jobs-dead"];

describe("a webhook", () => {
  const annsKey = Buffer.from("the key of acme, which nobody else has");
  const annsSecret = `whsec_${annsKey.toString("base64")}`;
  const bobsSecret = "the key of zenith as a text";
  const answers: string[] = [];

  beforeAll(async () => {
    await start({
      webhook: { secret: secretKey, allowHttp: true, allowPrivate: true, timeoutMs: 2_000 },
    });
    for (const [as, value] of [
      [ann, annsSecret],
      [bob, bobsSecret],
    ] as const) {
      const response = await app.fetch(`/config/${encodeURIComponent(secretKey.id)}`, {
        method: "PUT",
        as,
        body: { value },
      });
      expect(response.status).toBe(200);
      answers.push(await response.text());
    }
  });
  afterAll(() => app.close());
  beforeEach(() => {
    seen = app.logs.length;
  });

  test("is posted unchanged, signed with the secret of the sending tenant", async () => {
    sends({ alarm: "fire", é: "ü\u2028" });
    const requestIds: string[] = [];
    for (const as of [ann, bob]) {
      const response = await raise(as);
      expect(response.status).toBe(200);
      requestIds.push(String(response.headers.get("x-request-id")));
    }
    await app.settled();
    expect(received).toHaveLength(2);
    for (const [index, key] of [annsKey, Buffer.from(bobsSecret)].entries()) {
      const request = received.find(
        ({ headers }) => headers["x-request-id"] === requestIds[index],
      ) as Received; // safe: asserted next
      expect(request).toMatchObject({ method: "POST", path: "/hook?token=of-the-url" });
      expect(JSON.parse(request.body)).toEqual({ alarm: "fire", é: "ü\u2028" });
      expect(request.headers).toMatchObject({ "content-type": "application/json" });
      expect(isSigned(request, key)).toBe(true);
      expect(isSigned({ ...request, body: `${request.body} ` }, key)).toBe(false);
      expect(
        Math.abs(Number(request.headers["webhook-timestamp"]) - Date.now() / 1_000),
      ).toBeLessThan(60);
    }
    expect(received[0]?.headers["webhook-id"]).not.toBe(received[1]?.headers["webhook-id"]);
    expect(lines("webhook.sent")).toMatchObject([{ status: 200 }, { status: 200 }]);
    expect(app.deliveries.map(({ id }) => id).sort()).toEqual(
      received.map(({ headers }) => headers["webhook-id"]).sort(),
    );
  });

  test.each([
    ["a 500", 500, "answered with status 500"],
    ["a 429", 429, "answered with status 429"],
    ["no answer in its time", 0, "no answer within 2000 ms"],
  ])(
    "is retried after %s with the same webhook-id, and is delivered only once",
    async (_, status, why) => {
      const before = app.deliveries.length;
      statuses = [status, 200];
      sends({ alarm: `retried after ${status}` });
      await raise(ann);
      await app.settled();
      expect(received).toHaveLength(2);
      expect(new Set(received.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
      for (const request of received) expect(isSigned(request, annsKey)).toBe(true);
      expect(lines("queue.retry")).toMatchObject([{ reason: expect.stringContaining(why) }]);
      expect(lines("webhook.sent")).toHaveLength(1);
      expect(app.deliveries).toHaveLength(before + 1);
    },
  );

  test.each([
    ["404", 404, "answered with status 404"],
    ["410", 410, "answered with status 410"],
    ["a redirect", 302, "answered with status 302, and redirects are not followed"],
  ])(
    "answered with %s is given up at once, with one line that shows no secret of the URL",
    async (_, status, why) => {
      statuses = [status];
      sends({ alarm: `refused with ${status}` });
      await raise(ann);
      await expect(app.settled()).rejects.toThrow(refusal);
      expect(received).toHaveLength(1);
      expect(await bodiesOf(deadJobs, { isEmptied: true })).toHaveLength(1);
      expect(lines("queue.dead_lettered")).toEqual([
        expect.objectContaining({
          receives: 1,
          job: "keelson.delivery.send",
          reason: expect.stringContaining(why),
        }),
      ]);
      expect(lines("queue.retry")).toEqual([]);
      expect(JSON.stringify(app.logs.slice(seen))).not.toContain("of-the-url");
    },
  );

  test.each([
    ["a tenant without a secret", eve],
    ["somebody who is not signed in", undefined],
  ])("of %s is refused, and nothing is sent", async (_, caller) => {
    sends({ alarm: "unsigned" });
    expect((await raise(caller)).status).toBe(200);
    await expect(app.settled()).rejects.toThrow(refusal);
    expect(received).toEqual([]);
    expect(await bodiesOf(deadJobs, { isEmptied: true })).toHaveLength(1);
    const reason = `webhook: the tenant has no secret; set ${secretKey.id}`;
    expect(lines("queue.dead_lettered")).toEqual([expect.objectContaining({ reason })]);
  });

  test("with an empty secret is refused, since anybody could sign with it", async () => {
    const mallory: Caller = { id: "mallory", tenantId: "empty", roles: ["admin"] };
    const change = { method: "PUT", as: mallory, body: { value: "whsec_" } };
    expect((await app.fetch(`/config/${encodeURIComponent(secretKey.id)}`, change)).status).toBe(
      200,
    );
    sends({ alarm: "signed with nothing" });
    await raise(mallory);
    await expect(app.settled()).rejects.toThrow(refusal);
    expect(received).toEqual([]);
    expect(await bodiesOf(deadJobs, { isEmptied: true })).toHaveLength(1);
    expect(lines("queue.dead_lettered")).toEqual([
      expect.objectContaining({
        receives: 1,
        reason: expect.stringContaining("the secret is empty"),
      }),
    ]);
  });

  test("with an unreadable secret is retried and never sent unsigned", async () => {
    sends({ alarm: "late secret" });
    app.faults.before("TransactWriteItems", 1).crash();
    await expect(raise(ann)).rejects.toThrow(); // the next process has read nothing yet
    await raise(ann);
    app.faults.before("BatchGetItem", 1).fail("InternalServerError");
    await app.settled();
    expect(lines("queue.retry")).toHaveLength(1);
    expect(received).toHaveLength(1);
    expect(isSigned(received[0] as Received, annsKey)).toBe(true); // safe: there is one
  });

  test.each([
    ["no URL", { body: {} }, "url: it is not a URL"],
    ["a URL that is none", { url: "not a url", body: {} }, "url: it is not a URL"],
    [
      "a URL that is an object",
      { url: { href: "https://hook.invalid/" }, body: {} },
      "url: it is not a URL",
    ],
    ["no body", { url: "https://hook.invalid/" }, "body: it is not an object"],
    ["a body of null", { url: "https://hook.invalid/", body: null }, "body: it is not an object"],
    [
      "a body that is a text",
      { url: "https://hook.invalid/", body: "{}" },
      "body: it is not an object",
    ],
    [
      "a body that is a list",
      { url: "https://hook.invalid/", body: [1] },
      "body: it is not an object",
    ],
    [
      "members that it does not know",
      { url: "https://hook.invalid/", body: {}, secret: "x" },
      "secret: it is not known; a webhook has url and body",
    ],
    ["nothing right", {}, "(url: it is not a URL; body: it is not an object)"],
    ["no message at all", undefined, "the message for webhook"],
    ["a message of null", null, "the message for webhook"],
    ["a message that is a text", "hello", "the message for webhook"],
  ])("with %s fails in the handler that sends it", async (_, message, why) => {
    work = (ctx) => ctx.delivery.send("webhook", message as never);
    expect((await raise(ann)).status).toBe(500);
    const [failure] = lines("request.failed");
    expect(failure?.["message"]).toContain("ctx.delivery.send: ");
    expect(failure?.["message"]).toContain(why);
    await app.settled();
    expect(received).toEqual([]);
  });

  test("keeps its secret out of log lines, messages, answers and table items", async () => {
    sends({ alarm: "quiet" });
    statuses = [500];
    answers.push(await (await raise(ann)).text());
    const queued = await bodiesOf(jobs, { isEmptied: false });
    expect(queued).toHaveLength(1);
    expect(JSON.parse(String(queued[0]))).toMatchObject({
      payload: { channel: "webhook", message: { body: { alarm: "quiet" } } },
    });
    await app.settled();
    sends({ alarm: "quiet and refused" });
    statuses = [404];
    await raise(bob);
    await expect(app.settled()).rejects.toThrow(refusal);
    const dead = await bodiesOf(deadJobs, { isEmptied: true });
    expect(dead).toHaveLength(1);
    for (const path of [`/config/${encodeURIComponent(secretKey.id)}`, "/config"]) {
      answers.push(await (await app.fetch(path, { as: ann })).text());
    }
    const { db } = await app.ctx(ann);
    const items = await Promise.all(
      ["keelson-config", "keelson-once"].map(
        async (TableName) => (await db.send(new ScanCommand({ TableName }))).Items,
      ),
    );
    const everything = JSON.stringify(
      [answers, app.logs, queued, dead, items, app.jobs, app.deliveries, received],
      (_name, part) => (part instanceof Uint8Array ? Buffer.from(part).toString("latin1") : part),
    );
    for (const secret of [
      annsSecret,
      annsSecret.slice("whsec_".length),
      annsKey.toString(),
      bobsSecret,
    ]) {
      expect(everything.includes(secret)).toBe(false);
    }
  });
});

describe("a webhook of a server without a webhook secret", () => {
  beforeAll(() => start({ webhook: { allowHttp: true, allowPrivate: true } }), 60_000);
  afterAll(() => app.close());

  test("is sent unsigned, but with an ID and a timestamp", async () => {
    sends({ alarm: "plain" });
    await raise();
    await app.settled();
    const [request] = received;
    expect(request?.headers).not.toHaveProperty("webhook-signature");
    expect(request?.headers).toMatchObject({
      "webhook-id": app.deliveries[0]?.id,
      "webhook-timestamp": expect.stringMatching(/^\d{10}$/),
    });
  });
});

describe("a webhook of a server without webhook options", () => {
  beforeAll(() => start(), 60_000);
  afterAll(() => app.close());
  beforeEach(() => {
    seen = app.logs.length;
  });
  afterEach(() => bodiesOf(deadJobs, { isEmptied: true }));

  test.each([
    ["is not sent over http", () => hook, "the URL's scheme is http:, not https:"],
    [
      "is not sent to this machine",
      () => hook.replace("http:", "https:"),
      "the host has an address that is not public",
    ],
    [
      "is not sent to this machine by its name",
      () => "https://localhost/",
      "the host has an address that is not public",
    ],
    [
      "is not sent to the metadata of a machine",
      () => "https://169.254.169.254/",
      "the host has an address that is not public",
    ],
    [
      "takes no credentials",
      () => "https://ann:pass-of-ann@hook.invalid/",
      "the URL has credentials",
    ],
    [
      "is not sent with another scheme",
      () => "file:///etc/passwd",
      "the URL's scheme is file:, not https:",
    ],
  ])("%s, and is given up at once", async (_, url, why) => {
    sends({ alarm: "inside" }, url());
    expect((await raise(ann)).status).toBe(200);
    await expect(app.settled()).rejects.toThrow(refusal);
    expect(received).toEqual([]);
    expect(lines("queue.dead_lettered")).toEqual([
      expect.objectContaining({ receives: 1, reason: expect.stringContaining(why) }),
    ]);
    expect(JSON.stringify(app.logs.slice(seen))).not.toContain("pass-of-ann");
  });
});

describe("the channel log", () => {
  beforeAll(() => start(), 60_000);
  afterAll(() => app.close());
  beforeEach(() => {
    seen = app.logs.length;
  });

  test("writes one line with the message, redacted like any other line", async () => {
    work = (ctx) =>
      ctx.delivery.send("log", {
        text: "hello",
        password: "hunter2",
        nested: { authorization: "Bearer x" },
      });
    const response = await raise(ann);
    await app.settled();
    expect(lines("delivery.message")).toEqual([
      expect.objectContaining({
        level: "info",
        requestId: response.headers.get("x-request-id"),
        tenantId: "acme",
        userId: "ann",
        handler: "keelson.delivery.send",
        message: { text: "hello", password: "[redacted]", nested: { authorization: "[redacted]" } },
      }),
    ]);
    expect(JSON.stringify(app.logs.slice(seen))).not.toMatch(/hunter2|Bearer x/);
  });

  test("bounds its line like any other", async () => {
    work = (ctx) => ctx.delivery.send("log", { text: "x".repeat(200_000) });
    await raise(ann);
    await app.settled();
    expect(lines("delivery.message")).toHaveLength(1);
    expect(JSON.stringify(lines("delivery.message")).length).toBeLessThan(65_536);
  });

  test.each([
    ["nothing", undefined],
    ["a text", "hello"],
    ["a list", ["hello"]],
  ])("refuses %s as a message, naming ctx.delivery.send", async (_, message) => {
    work = (ctx) => ctx.delivery.send("log", message as never); // as plain JavaScript may
    expect((await raise(ann)).status).toBe(500);
    expect(lines("request.failed")[0]?.["message"]).toContain("ctx.delivery.send: ");
  });
});

describe("webhooks to an unresponsive DNS zone", () => {
  test("do not delay another tenant's webhook, which is delivered while they all wait", async () => {
    const end = Promise.withResolvers<DnsAnswer>();
    const dns = await startDnsServer(({ name }) =>
      name.endsWith("dead.example") ? end.promise : { addresses: ["127.0.0.1"] },
    );
    onTestFinished(() => dns.close());
    const lookups = createNameLookups({ servers: [dns.address], hostsFile: "/nowhere" });
    const webhook = { allowHttp: true, allowPrivate: true, timeoutMs: 60_000 };
    const channel = new Map(builtInChannels({ webhook }, { open: async () => lookups })).get(
      "webhook",
    );
    const ended: string[] = [];
    const deliver = async (tenantId: string, name: string) => {
      const log = { info: () => undefined };
      const ctx = {
        user: { id: "ann", tenantId, roles: [] },
        requestId: "r1",
        log,
        trace: new RunTrace(createRandomDigits()),
      } as unknown as PipelineContext; // nothing else is asked for
      const url = new URL(hook);
      url.hostname = name;
      await channel?.send(ctx, { url: url.href, body: { name } }, { id: name });
      ended.push(name);
    };
    const waiting = Array.from({ length: 8 }, (_, n) => deliver("acme", `hook-${n}.dead.example`));
    await expect.poll(() => dns.pending()).toHaveLength(4);
    await deliver("zenith", "hooks.example");
    expect(ended).toEqual(["hooks.example"]);
    expect(received.map(({ headers }) => headers["webhook-id"])).toEqual(["hooks.example"]);
    expect(dns.pending()).toHaveLength(4);
    end.resolve({ code: "noSuchName" });
    for (const outcome of await Promise.allSettled(waiting)) {
      expect(outcome).toMatchObject({ reason: { name: "WebhookError", isRetryable: true } });
    }
  });
});

test("a message of a channel that is not there is tried again: another version may have it", async () => {
  const { run } = createDeliveryJob(new Map());
  const payload = { channel: "pigeon", key: "k", message: {} };
  // Safe casts: it fails before it uses either.
  const failure = await Promise.resolve(run({} as never, payload, {} as never)).catch(
    (error: unknown) => error,
  );
  expect(failure).toEqual(new Error("there is no channel pigeon"));
  expect(failure).not.toBeInstanceOf(PermanentError);
});
