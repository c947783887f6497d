import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { EventBridgeClient, PutEventsCommand } from "@aws-sdk/client-eventbridge";
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SetQueueAttributesCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { stubAws } from "../../../test/support/stub-aws.ts";
import { defineFeature } from "../../app/features/feature.ts";
import { createRegistry } from "../../app/registry/registry.ts";
import type { Messaging } from "../../app/runtime/adapters.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { type EmbeddedStack, startEmbeddedStack } from "../../embedded/stack/index.ts";
import { pollSeconds } from "../../hosts/container/workers.ts";
import type { MessageQueue, QueueMessage } from "../../parts/messages/message-queue.ts";
import * as sdk from "../clients/messaging-sdk.ts";
import { type MessagingOptions, openMessaging } from "./messaging.ts";
import { messagingNames } from "./names.ts";
import { queueMessage, sqsQueue } from "./sqs-queue.ts";

let stack: EmbeddedStack;
let client: SQSClient;
/** The operations that were asked for, in their order. */
let asked: string[] = [];
/** The operation that SQS refuses. */
let refused: string | undefined;
const account = {
  region: "us-east-1",
  credentials: { accessKeyId: "test", secretAccessKey: "test" },
};

beforeAll(async () => {
  stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  client = new SQSClient({ ...account, endpoint: stack.endpoint });
  client.middlewareStack.add(
    (next, { commandName }) =>
      (parameters) => {
        asked.push(String(commandName));
        if (commandName === refused)
          throw Object.assign(new Error("not allowed"), { name: "AccessDenied" });
        return next(parameters);
      },
    { step: "initialize" },
  );
});
afterAll(async () => {
  client.destroy();
  await stack.close();
});

const fresh = () => `q-${crypto.randomUUID()}`;

async function create(QueueName: string, Attributes: Record<string, string> = {}): Promise<string> {
  const ordered: Record<string, string> = QueueName.endsWith(".fifo") ? { FifoQueue: "true" } : {};
  const { QueueUrl } = await client.send(
    new CreateQueueCommand({ QueueName, Attributes: { ...ordered, ...Attributes } }),
  );
  return String(QueueUrl);
}

async function arnOf(QueueUrl: string): Promise<string> {
  const { Attributes } = await client.send(
    new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["QueueArn"] }),
  );
  return String(Attributes?.["QueueArn"]);
}

/** Makes a queue and its dead-letter queue; gives both. */
async function createWithDead(name: string, maxReceiveCount: number | string = 4) {
  const deadName = name.endsWith(".fifo") ? `${name.slice(0, -5)}-dead.fifo` : `${name}-dead`;
  const deadLetterTargetArn = await arnOf(await create(deadName));
  const url = await create(name, {
    RedrivePolicy: JSON.stringify({ deadLetterTargetArn, maxReceiveCount }),
  });
  return { url, queue: sqsQueue(sdk, client, name), dead: sqsQueue(sdk, client, deadName) };
}

const put = (QueueUrl: string, MessageBody: string) =>
  client.send(new SendMessageCommand({ QueueUrl, MessageBody }));

async function receiveOne(queue: MessageQueue): Promise<QueueMessage> {
  const [message, ...more] = await queue.receive();
  expect(more).toEqual([]);
  return message as QueueMessage; // safe: the test says that there is one, and fails at its next step otherwise
}

describe("an SQS queue", () => {
  test.each(["", ".fifo"])(
    "with the name q%s is found by its name, and its address is requested once",
    async (ending) => {
      const name = `${fresh()}${ending}`;
      const url = await create(name);
      const queue = sqsQueue(sdk, client, name);
      asked = [];
      expect(queue.name).toBe(name);
      expect(await Promise.all([queue.url(), queue.url()])).toEqual([url, url]);
      expect(await queue.receive()).toEqual([]);
      expect(asked).toEqual(["GetQueueUrlCommand", "ReceiveMessageCommand"]);
    },
  );

  test("is found by its address without a call", async () => {
    const name = fresh();
    const url = await create(name);
    const queue = sqsQueue(sdk, client, url);
    asked = [];
    expect(queue.name).toBe(name);
    expect(await queue.url()).toBe(url);
    expect(asked).toEqual([]);
    expect(await queue.size()).toEqual({ visible: 0, hidden: 0 });
  });

  test("that does not exist fails with an error that names it and the variables, and is looked up again next time", async () => {
    const name = fresh();
    const queue = sqsQueue(sdk, client, name);
    const error = await queue.receive().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      message: `the queue ${name} does not exist; deploy it, or set KEELSON_EVENT_QUEUE, KEELSON_JOB_QUEUE, KEELSON_FAIR_JOB_QUEUE or KEELSON_RECEIVED_QUEUE`,
      cause: { name: "QueueDoesNotExist" },
    });
    await expect(queue.size()).rejects.toThrow(name);
    await create(name);
    expect(await queue.size()).toEqual({ visible: 0, hidden: 0 });
  });

  test("fails like the SDK when SQS is unreachable, and is looked up again next time", async () => {
    const name = fresh();
    const url = await create(name);
    const flaky = new SQSClient({ ...account, endpoint: stack.endpoint });
    let isDown = true;
    flaky.middlewareStack.add(
      (next) => (parameters) =>
        isDown
          ? Promise.reject(Object.assign(new Error("down"), { name: "ServiceUnavailable" }))
          : next(parameters),
      { step: "initialize" },
    );
    const queue = sqsQueue(sdk, flaky, name);
    await expect(queue.url()).rejects.toMatchObject({
      name: "ServiceUnavailable",
      message: "down",
    });
    await expect(queue.maxReceives()).rejects.toThrow("down");
    isDown = false;
    expect(await queue.url()).toBe(url);
    expect(await queue.maxReceives()).toBeUndefined();
    flaky.destroy();
  });

  test("returns each message once, with its receive count, until it is handed back or its visibility ends", async () => {
    const name = fresh();
    const url = await create(name);
    const queue = sqsQueue(sdk, client, name);
    await put(url, "one");
    const first = await receiveOne(queue);
    expect(first).toMatchObject({ body: "one", group: undefined, receives: 1 });
    expect(await queue.receive()).toEqual([]);
    expect(await queue.size()).toEqual({ visible: 0, hidden: 1 });
    await queue.changeVisibility(first.receipt, 0);
    expect(await queue.size()).toEqual({ visible: 1, hidden: 0 });
    const second = await receiveOne(queue);
    expect(second).toMatchObject({ id: first.id, body: "one", receives: 2 });
    await queue.changeVisibility(second.receipt, 1);
    expect(await queue.size()).toEqual({ visible: 0, hidden: 1 });
    await expect.poll(() => queue.size()).toEqual({ visible: 1, hidden: 0 });
    const third = await receiveOne(queue);
    expect(third.receives).toBe(3);
    await queue.remove(third.receipt);
    expect(await queue.size()).toEqual({ visible: 0, hidden: 0 });
  });

  test("hides a message for SQS's maximum if more is requested", async () => {
    const name = fresh();
    const url = await create(name);
    const queue = sqsQueue(sdk, client, name);
    await put(url, "long");
    await queue.changeVisibility((await receiveOne(queue)).receipt, 7 * 24 * 60 * 60 * 1_000);
    expect(await queue.size()).toEqual({ visible: 0, hidden: 1 });
  });

  test("returns at most ten messages at a time", async () => {
    const name = fresh();
    const url = await create(name);
    const queue = sqsQueue(sdk, client, name);
    for (let count = 0; count < 12; count += 1) await put(url, `m${count}`);
    const batches = [await queue.receive(), await queue.receive()];
    expect(batches.map(({ length }) => length)).toEqual([10, 2]);
  });

  test("that is ordered returns a group in order, and treats a repeated ID within five minutes as the same message", async () => {
    const name = `${fresh()}.fifo`;
    await create(name);
    const queue = sqsQueue(sdk, client, name);
    const ids = [
      await queue.send("1", { group: "a", deduplicationId: "one" }),
      await queue.send("2", { group: "a", deduplicationId: "two" }),
      await queue.send("again", { group: "b", deduplicationId: "one" }),
    ];
    expect(ids[2]).toBe(ids[0]);
    expect(await queue.size()).toEqual({ visible: 2, hidden: 0 });
    const messages = await queue.receive();
    expect(messages).toMatchObject([
      { id: ids[0], body: "1", group: "a", receives: 1 },
      { id: ids[1], body: "2", group: "a", receives: 1 },
    ]);
  });

  test("requests its redrive policy once, and reads its count as a number or a text", async () => {
    for (const count of [4, "4"]) {
      const { queue } = await createWithDead(fresh(), count);
      asked = [];
      expect(await queue.maxReceives()).toBe(4);
      expect(await queue.maxReceives()).toBe(4);
      expect(asked).toEqual(["GetQueueUrlCommand", "GetQueueAttributesCommand"]);
    }
  });

  test("computes how long it may redeliver a message: its attempts times the longest wait, at most its retention", async () => {
    const set = async (url: string, attributes: Record<string, string>) =>
      client.send(new SetQueueAttributesCommand({ QueueUrl: url, Attributes: attributes }));
    const { url } = await createWithDead(fresh(), 4);
    await set(url, { VisibilityTimeout: "300" });
    expect(await sqsQueue(sdk, client, url).redeliveryMs.open()).toBe(4 * 300_000);
    await set(url, { VisibilityTimeout: "1" });
    expect(await sqsQueue(sdk, client, url).redeliveryMs.open()).toBe(4 * 120_000); // a failed message waits for longer
    await set(url, { VisibilityTimeout: "43200", MessageRetentionPeriod: "86400" });
    expect(await sqsQueue(sdk, client, url).redeliveryMs.open()).toBe(86_400_000);
    const endless = await create(fresh());
    await set(endless, { MessageRetentionPeriod: "600000" });
    expect(await sqsQueue(sdk, client, endless).redeliveryMs.open()).toBe(600_000_000);
  });

  test("assumes the longest time and the longest pause if another SQS implementation gives no value", async () => {
    const saying = (Attributes: Record<string, string>) =>
      sqsQueue(
        sdk,
        { send: async () => ({ Attributes }) } as unknown as SQSClient,
        "https://sqs.invalid/1/q",
      ); // nothing else is asked
    expect(await saying({}).redeliveryMs.open()).toBe(14 * 86_400_000);
    const RedrivePolicy = JSON.stringify({
      deadLetterTargetArn: "arn:aws:sqs:::dead",
      maxReceiveCount: 3,
    });
    expect(await saying({ RedrivePolicy }).redeliveryMs.open()).toBe(3 * 120_000);
  });

  test("assumes SQS's longest retention if it may not ask, and asks once", async () => {
    const { queue } = await createWithDead(fresh(), 4);
    refused = "GetQueueAttributesCommand";
    asked = [];
    for (let times = 0; times < 2; times += 1)
      expect(await queue.redeliveryMs.open()).toBe(14 * 86_400_000);
    refused = undefined;
    expect(asked.filter((name) => name === "GetQueueAttributesCommand")).toHaveLength(1);
  });

  test.each(["", ".fifo"])(
    "with the name q%s moves a message to its dead-letter queue",
    async (ending) => {
      const name = `${fresh()}${ending}`;
      const { url, queue, dead } = await createWithDead(name);
      if (ending === "") await put(url, "poison");
      else await queue.send("poison", { group: "g", deduplicationId: "d" });
      expect(await queue.deadLetter(await receiveOne(queue), "no room")).toBe(true);
      expect(await queue.size()).toEqual({ visible: 0, hidden: 0 });
      expect(await receiveOne(dead)).toMatchObject({
        body: "poison",
        group: ending === "" ? undefined : "g",
        receives: 1,
      });
    },
  );

  test("that is fair and not ordered dead-letters a message without a deduplication ID, and keeps its group", async () => {
    const { url, queue, dead } = await createWithDead(fresh());
    await client.send(
      new SendMessageCommand({ QueueUrl: url, MessageBody: "poison", MessageGroupId: "acme" }),
    );
    const message = await receiveOne(queue);
    expect(message).toMatchObject({ group: "acme" });
    expect(await queue.deadLetter(message, "no room")).toBe(true);
    expect(await queue.size()).toEqual({ visible: 0, hidden: 0 });
    expect(await receiveOne(dead)).toMatchObject({ body: "poison", group: "acme" });
  });

  test.each([
    ["no room\nfor it", "poison", "no room\nfor it"],
    ["a\u0000b\ufffec\ud800d", "poison", "a b c d"],
    ["x".repeat(2_000), "poison", "x".repeat(1_000)],
    [" ", "poison", undefined],
    ["no room", "x".repeat(1_048_576 - 10), undefined],
  ])("dead-letters a message with its error, if SQS takes it (%#)", async (reason, body, sent) => {
    const { url, queue, dead } = await createWithDead(fresh());
    await put(url, body);
    expect(await queue.deadLetter(await receiveOne(queue), reason)).toBe(true);
    const command = new ReceiveMessageCommand({
      QueueUrl: await dead.url(),
      MessageAttributeNames: ["All"],
    });
    const [message] = (await client.send(command)).Messages ?? [];
    expect(message?.Body).toHaveLength(body.length);
    expect(message?.MessageAttributes?.["keelson-reason"]?.StringValue).toBe(sent);
  });

  test("that is ordered dead-letters a message only once", async () => {
    const { queue, dead } = await createWithDead(`${fresh()}.fifo`);
    await queue.send("poison", { group: "g", deduplicationId: "d" });
    const message = await receiveOne(queue);
    await queue.deadLetter(message, "no room");
    await queue.deadLetter(message, "no room");
    expect(await dead.size()).toEqual({ visible: 1, hidden: 0 });
  });

  test("without a redrive policy dead-letters nothing, says so, and keeps the message", async () => {
    const name = fresh();
    await put(await create(name), "poison");
    const queue = sqsQueue(sdk, client, name);
    const message = await receiveOne(queue);
    expect(await queue.maxReceives()).toBeUndefined();
    expect(await queue.deadLetter(message, "no room")).toBe(false);
    await queue.changeVisibility(message.receipt, 0);
    expect(await receiveOne(queue)).toMatchObject({ id: message.id, receives: 2 });
  });

  test("keeps a message that its dead-letter queue rejects", async () => {
    const { url, queue, dead } = await createWithDead(fresh());
    await put(url, "poison");
    const { DeleteQueueCommand } = await import("@aws-sdk/client-sqs");
    await client.send(new DeleteQueueCommand({ QueueUrl: await dead.url() }));
    const message = await receiveOne(queue);
    await expect(queue.deadLetter(message, "no room")).rejects.toThrow(
      `the queue ${dead.name} does not exist`,
    );
    expect(await queue.size()).toEqual({ visible: 0, hidden: 1 });
    await create(dead.name);
    expect(await queue.deadLetter(message, "no room")).toBe(true);
  });

  test("a message with only a body counts as received once", () => {
    const one = { MessageId: "m", Body: "b", ReceiptHandle: "r" };
    const expected = { id: "m", body: "b", receipt: "r", group: undefined, receives: 1 };
    expect(queueMessage(one)).toEqual(expected);
    expect(queueMessage({ ...one, Attributes: {} })).toEqual(expected);
  });
});

describe("the messaging of a server", () => {
  test("takes its names from the prefix of the tables or from the environment", () => {
    const own = {
      bus: "my.app",
      source: "my.app",
      events: "my-app-events",
      jobs: "my-app-jobs.fifo",
      fairJobs: "my-app-jobs",
      received: "my-app-received",
      fairMode: "off",
    };
    expect(messagingNames("my.app", {})).toEqual(own);
    expect(
      messagingNames("my.app", {
        KEELSON_EVENT_BUS: "",
        KEELSON_EVENT_QUEUE: "",
        KEELSON_JOB_QUEUE: "",
        KEELSON_FAIR_JOB_QUEUE: "",
        KEELSON_RECEIVED_QUEUE: "",
        KEELSON_FAIR_JOBS: "",
      }),
    ).toEqual(own);
    const variables = {
      KEELSON_EVENT_BUS: "b",
      KEELSON_EVENT_QUEUE: "e",
      KEELSON_JOB_QUEUE: "j.fifo",
      KEELSON_RECEIVED_QUEUE: "o",
    };
    expect(messagingNames("my.app", variables)).toEqual({
      bus: "b",
      source: "my.app",
      events: "e",
      jobs: "j.fifo",
      fairJobs: "j",
      received: "o",
      fairMode: "off",
    });
  });

  test.each([
    [{ KEELSON_JOB_QUEUE: "https://sqs/1/j.fifo" }, "https://sqs/1/j"],
    [{ KEELSON_JOB_QUEUE: "standard" }, "standard-fair"],
    [{ KEELSON_JOB_QUEUE: "j.fifo", KEELSON_FAIR_JOB_QUEUE: "f" }, "f"],
  ])("names the fair queue after the queue of jobs: %j", (variables, fairJobs) => {
    expect(messagingNames("app", variables)).toMatchObject({ fairJobs });
  });

  test("takes the mode of the fair queue from the environment, and refuses another", () => {
    for (const mode of ["off", "receive", "send"] as const)
      expect(messagingNames("app", { KEELSON_FAIR_JOBS: mode }, "send").fairMode).toBe(mode);
    expect(messagingNames("app", {}, "send").fairMode).toBe("send");
    expect(() => messagingNames("app", { KEELSON_FAIR_JOBS: "on" })).toThrow(
      'KEELSON_FAIR_JOBS is "on"; use off, receive or send',
    );
  });

  const pausing = { pause: async () => undefined };
  const runtime = { runs: { open: async () => ({ once: pausing }) } } as unknown as Runtime; // safe: messaging uses nothing else
  const options = (prefix: string, more: Partial<MessagingOptions> = {}): MessagingOptions => ({
    ...account,
    sqsEndpoint: stack.endpoint,
    eventBridgeEndpoint: stack.endpoint,
    names: messagingNames(prefix, {}),
    registry: createRegistry([], { webhook: {} }), // so that the server has messages
    mode: "create",
    ...more,
  });
  const exists = (QueueName: string) =>
    client.send(new GetQueueUrlCommand({ QueueName })).then(
      () => true,
      () => false,
    );

  test("is created if missing: events on the bus reach the event queue, and failures the dead-letter queue", async () => {
    const prefix = fresh();
    const messaging = await openMessaging(runtime, options(prefix));
    expect(await messaging.bus.put([{ type: "thing.made", text: '{"name":"x"}' }])).toEqual([
      undefined,
    ]);
    const [message] = await messaging.events.receive();
    expect(JSON.parse(String(message?.body))).toMatchObject({
      "detail-type": "thing.made",
      source: prefix,
      detail: { name: "x" },
    });
    expect(await messaging.events.maxReceives()).toBe(5);
    expect(await messaging.jobs.maxReceives()).toBe(5);
    expect(await exists(`${prefix}-jobs-dead.fifo`)).toBe(true);
    expect(await messaging.queue(`${prefix}-events-dead`).size()).toEqual({
      visible: 0,
      hidden: 0,
    });
    messaging.close();
  });

  test("refuses a queue for events of others that also holds its own messages", async () => {
    const names = (received: string) => ({ ...messagingNames("app", {}), received });
    const others = defineFeature("others", (r) =>
      r.receive("thing.made", {
        ...{ source: "maker", detailType: "Made", input: z.object({}) },
        handler: async () => undefined,
      }),
    );
    const registry = createRegistry([others]);
    for (const name of ["https://sqs/1/app-events", "app-jobs.fifo", "app-jobs"])
      await expect(
        openMessaging(runtime, options("app", { registry, names: names(name) })),
      ).rejects.toThrow("is a queue of the server's own messages; events of others need their own");
  });

  test("makes the bus of a partner under its last part, and a rule that its events match", async () => {
    const others = defineFeature("others", (r) =>
      r.receive("thing.made", {
        ...{ source: "aws.partner/maker", detailType: "Made", input: z.object({}) },
        ...{ bus: "aws.partner/maker/one", handler: async () => undefined },
      }),
    );
    const prefix = fresh();
    const registry = createRegistry([others]);
    const messaging = await openMessaging(runtime, options(prefix, { registry }));
    const bus = new EventBridgeClient({ ...account, endpoint: stack.endpoint });
    const entry = { Source: "aws.partner/maker", DetailType: "Made", Detail: "{}" };
    const EventBusName = "aws.partner/maker/one";
    await bus.send(new PutEventsCommand({ Entries: [{ ...entry, EventBusName }] }));
    expect(await messaging.others.receive()).toHaveLength(1);
    expect(await exists(`${prefix}-events`)).toBe(false);
    bus.destroy();
    messaging.close();
  });

  test("is left unchanged if it exists, even with other attributes", async () => {
    const prefix = fresh();
    await create(`${prefix}-events`, { VisibilityTimeout: "77" });
    const first = await openMessaging(runtime, options(prefix));
    const second = await openMessaging(runtime, options(prefix));
    expect(await second.events.maxReceives()).toBeUndefined();
    expect(await second.bus.put([{ type: "thing.made", text: "{}" }])).toEqual([undefined]);
    expect(await second.events.receive()).toHaveLength(1);
    first.close();
    second.close();
  });

  test("is created once by processes that start at the same time", async () => {
    const prefix = fresh();
    const all = await Promise.all([1, 2, 3, 4].map(() => openMessaging(runtime, options(prefix))));
    const [first] = all as [Messaging]; // safe: there are four
    expect(await first.bus.put([{ type: "thing.made", text: "{}" }])).toEqual([undefined]);
    expect(await first.events.receive()).toHaveLength(1);
    for (const messaging of all) messaging.close();
  });

  test("is created although another process changes the bus at the same moment", async () => {
    const refusals = ["CreateEventBus", "PutRule", "PutRule", "PutTargets"];
    const busy = (operation: string) => () => {
      if (refusals[0] !== operation) return undefined;
      refusals.shift();
      return { error: "ConcurrentModificationException" };
    };
    const stub = await stubAws(
      Object.fromEntries(
        ["CreateEventBus", "PutRule", "PutTargets"].map((operation) => [
          operation,
          busy(operation),
        ]),
      ),
      { target: stack.endpoint },
    );
    const messaging = await openMessaging(
      runtime,
      options(fresh(), { eventBridgeEndpoint: stub.endpoint }),
    );
    expect(refusals).toEqual([]);
    expect(await messaging.bus.put([{ type: "thing.made", text: "{}" }])).toEqual([undefined]);
    expect(await messaging.events.receive()).toHaveLength(1);
    messaging.close();
    stub.close();
  });

  test("fails within three attempts if SQS and EventBridge accept connections but never answer", async () => {
    let connections = 0;
    const silent = createServer(() => {
      connections += 1;
    }).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo; // safe: it listens on a port
    const endpoint = `http://127.0.0.1:${port}`;
    const messaging = await openMessaging(
      runtime,
      options(fresh(), {
        ...{ sqsEndpoint: endpoint, eventBridgeEndpoint: endpoint },
        ...{ mode: "check", attemptMs: 20 },
      }),
    );
    await expect(messaging.jobs.size()).rejects.toMatchObject({ name: "TimeoutError" });
    expect(connections).toBe(3);
    const [refusal] = await messaging.bus.put([{ type: "thing.made", text: "{}" }]);
    expect(refusal).toMatchObject({
      reason: expect.stringMatching(/^TimeoutError/),
      isFinal: false,
    });
    expect(connections).toBe(6);
    messaging.close();
    silent.close();
  });

  test("a long poll of a container does not end before SQS answers it", async () => {
    let polls = 0;
    const slow = createHttpServer((_request, response) => {
      polls += 1;
      // As SQS answers if no message has come.
      setTimeout(() => response.end("{}"), pollSeconds * 1_000 + 50);
    }).listen(0, "127.0.0.1");
    await once(slow, "listening");
    const { port } = slow.address() as AddressInfo; // safe: it listens on a port
    const messaging = await openMessaging(
      runtime,
      options(fresh(), { sqsEndpoint: `http://127.0.0.1:${port}`, mode: "check" }),
    );
    const poll = { QueueUrl: `http://127.0.0.1:${port}/1/q`, WaitTimeSeconds: pollSeconds };
    expect(await messaging.sqs.send(new ReceiveMessageCommand(poll))).toMatchObject({});
    expect(polls).toBe(1);
    messaging.close();
    slow.close();
  });

  test("fails if the bus keeps changing", async () => {
    const stub = await stubAws(
      { PutRule: { error: "ConcurrentModificationException" } },
      { target: stack.endpoint },
    );
    await expect(
      openMessaging(runtime, options(fresh(), { eventBridgeEndpoint: stub.endpoint })),
    ).rejects.toMatchObject({
      name: "ConcurrentModificationException",
    });
    stub.close();
  });

  test("fails if EventBridge accepts the rule but not its target", async () => {
    const names = { ...messagingNames(fresh(), {}), events: `${fresh()}.fifo` };
    await expect(openMessaging(runtime, options("x", { names }))).rejects.toThrow(
      /EventBridge does not put the events of the bus .* into .*\.fifo: .*SqsParameters/,
    );
  });

  test("is created under the names in the addresses of its queues", async () => {
    const prefix = fresh();
    const names = {
      ...messagingNames(prefix, {}),
      events: `${stack.endpoint}/000000000000/${prefix}-in`,
    };
    const messaging = await openMessaging(runtime, options(prefix, { names }));
    expect(await exists(`${prefix}-in`)).toBe(true);
    expect(await messaging.events.size()).toEqual({ visible: 0, hidden: 0 });
    messaging.close();
  });

  test("is not created if the deployment owns it", async () => {
    const prefix = fresh();
    const messaging = await openMessaging(runtime, options(prefix, { mode: "check" }));
    expect(await exists(`${prefix}-events`)).toBe(false);
    await expect(messaging.events.receive()).rejects.toThrow(
      `the queue ${prefix}-events does not exist`,
    );
    messaging.close();
  });

  test.each([
    ["a queue that cannot be made", { events: "no name" }, "InvalidParameterValue"],
    ["a bus that cannot be made", { bus: "no name" }, "ValidationException"],
  ])("fails with %s", async (_, wrong, name) => {
    const names = { ...messagingNames(fresh(), {}), ...wrong };
    await expect(openMessaging(runtime, options("x", { names }))).rejects.toMatchObject({ name });
  });
});
