import {
  ChangeMessageVisibilityBatchCommand,
  CreateQueueCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type EmbeddedStack, startEmbeddedStack } from "../../embedded/stack/index.ts";
import { type DeadLetter, type DeadLetters, openDeadLetters } from "./dead-letters.ts";

let stack: EmbeddedStack;
let client: SQSClient;
beforeAll(async () => {
  stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  client = new SQSClient({ endpoint: stack.endpoint, region: "us-east-1", credentials });
});
afterAll(async () => {
  client.destroy();
  await stack.close();
});

/** Opens a new queue with this many dead letters. */
async function withLetters(count: number) {
  const create = async (QueueName: string, Attributes: Record<string, string> = {}) =>
    String((await client.send(new CreateQueueCommand({ QueueName, Attributes }))).QueueUrl);
  const name = `q-${crypto.randomUUID()}`;
  const dead = await create(`${name}-dead`);
  const AttributeNames = ["QueueArn" as const];
  const { Attributes } = await client.send(
    new GetQueueAttributesCommand({ QueueUrl: dead, AttributeNames }),
  );
  const redrive = { deadLetterTargetArn: Attributes?.QueueArn, maxReceiveCount: 5 };
  const url = await create(name, { RedrivePolicy: JSON.stringify(redrive) });
  for (let first = 0; first < count; first += 10) {
    const entries = Array.from({ length: Math.min(10, count - first) }, (_, n) => ({
      Id: `${n}`,
      MessageBody: `${first + n}`,
    }));
    await client.send(new SendMessageBatchCommand({ QueueUrl: dead, Entries: entries }));
  }
  // Safe cast: the queue has a dead-letter queue.
  const letters = (await openDeadLetters(client, { url: async () => url })) as DeadLetters;
  return { letters, dead };
}

async function readAll({ read }: DeadLetters): Promise<DeadLetter[]> {
  const found: DeadLetter[] = [];
  for await (const some of read()) found.push(...some);
  return found;
}

test("hidden and delayed letters count", async () => {
  const { letters, dead } = await withLetters(3);
  const hide = { QueueUrl: dead, MaxNumberOfMessages: 2, VisibilityTimeout: 60 };
  await client.send(new ReceiveMessageCommand(hide));
  const delayed = { Id: "later", MessageBody: "later", DelaySeconds: 900 };
  await client.send(new SendMessageBatchCommand({ QueueUrl: dead, Entries: [delayed] }));
  expect(await letters.count()).toBe(4);
});

test("many letters are released in batches, a few at a time, although one batch fails", async () => {
  const { letters } = await withLetters(62);
  const found = await readAll(letters);
  expect(found).toHaveLength(62);
  const sizes: number[] = [];
  let [running, most] = [0, 0];
  const send = client.send.bind(client);
  vi.spyOn(client, "send").mockImplementation((async (
    command: ChangeMessageVisibilityBatchCommand,
  ) => {
    expect(command).toBeInstanceOf(ChangeMessageVisibilityBatchCommand);
    sizes.push(command.input.Entries?.length ?? 0);
    most = Math.max(most, ++running);
    const isFirst = sizes.length === 1;
    await (isFirst ? Promise.reject(new Error("throttled")) : send(command)).finally(() => {
      running -= 1;
    });
  }) as SQSClient["send"]); // safe: the result is not used
  await letters.release(found);
  vi.restoreAllMocks();
  expect([sizes, most]).toEqual([[2, 10, 10, 10, 10, 10, 10], 5]);
  expect(await readAll(letters)).toHaveLength(60);
});
