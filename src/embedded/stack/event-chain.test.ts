import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  EventBridgeClient,
  PutEventsCommand,
  PutRuleCommand,
  PutTargetsCommand,
} from "@aws-sdk/client-eventbridge";
import {
  CreateQueueCommand,
  DeleteMessageCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type EmbeddedStack, startEmbeddedStack } from "./index.ts";

const credentials = { accessKeyId: "embedded", secretAccessKey: "embedded" };
let directory: string;
let stack: EmbeddedStack;
let sqs: SQSClient;
let events: EventBridgeClient;

async function start(): Promise<void> {
  stack = await startEmbeddedStack({ directory, env: { NODE_ENV: "test" } });
  const options = { endpoint: stack.endpoint, region: "us-east-1", credentials };
  sqs = new SQSClient(options);
  events = new EventBridgeClient(options);
}

/** Kills the stack as it is, and starts one on what it left. */
async function crash(): Promise<void> {
  process.kill(JSON.parse(readFileSync(join(directory, "holder.json"), "utf8")).pid, "SIGKILL");
  await stack.close();
  await start();
}

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "keelson-event-chain-"));
  await start();
});
afterEach(async () => {
  await stack.close();
  rmSync(directory, { recursive: true });
});

const QueueName = "orders.fifo";
const QueueUrl = `http://127.0.0.1/000000000000/${QueueName}`; // the SDK is told its endpoint: only the name counts
const receive = async (WaitTimeSeconds = 0): Promise<Message[]> =>
  (
    await sqs.send(
      new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds }),
    )
  ).Messages ?? [];

test("a killed stack keeps events, messages in flight, deduplication IDs and routes", async () => {
  await sqs.send(
    new CreateQueueCommand({
      QueueName,
      Attributes: { FifoQueue: "true", ContentBasedDeduplication: "true" },
    }),
  );
  await events.send(
    new PutRuleCommand({ Name: "orders", EventPattern: JSON.stringify({ source: ["shop"] }) }),
  );
  const Arn = `arn:aws:sqs:us-east-1:000000000000:${QueueName}`;
  const target = { Id: "queue", Arn, SqsParameters: { MessageGroupId: "events" } };
  await events.send(new PutTargetsCommand({ Rule: "orders", Targets: [target] }));
  const put = (n: number) => ({
    Source: "shop",
    DetailType: "OrderPlaced",
    Detail: JSON.stringify({ n }),
  });
  await events.send(new PutEventsCommand({ Entries: [put(1)] }));
  const [flying] = await receive();
  const direct = new SendMessageCommand({
    QueueUrl,
    MessageBody: "direct",
    MessageGroupId: "other",
  });
  const sent = await sqs.send(direct);

  await crash();
  expect((await sqs.send(direct)).MessageId).toBe(sent.MessageId);
  expect((await receive()).map(({ Body }) => Body)).toEqual(["direct"]);
  await events.send(new PutEventsCommand({ Entries: [put(2)] }));
  expect(await receive()).toEqual([]);
  await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: flying?.ReceiptHandle }));

  await crash();
  expect((await receive()).map(({ Body = "" }) => JSON.parse(Body).detail)).toEqual([{ n: 2 }]);
});

test("closing a stack ends its long polls", async () => {
  await sqs.send(new CreateQueueCommand({ QueueName, Attributes: { FifoQueue: "true" } }));
  const waiting = receive(20);
  await receive(); // the stack has taken the call before this one
  const started = performance.now();
  await stack.close();
  expect(await waiting).toEqual([]);
  expect(performance.now() - started).toBeLessThan(15_000); // a poll has 20 s
});
