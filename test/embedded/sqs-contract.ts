import {
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  ListQueuesCommand,
  PurgeQueueCommand,
  QueueDoesNotExist,
  SetQueueAttributesCommand,
} from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describeBatches } from "./batches-contract.ts";
import { describeDeadLetters } from "./dead-letters-contract.ts";
import { describeFairQueues } from "./fair-contract.ts";
import { describeFifoQueues } from "./fifo-contract.ts";
import { describeMessages } from "./messages-contract.ts";
import {
  bodies,
  type ContractQueues,
  contractQueues,
  fresh,
  refused,
  type SqsCapabilities,
  type SqsConnection,
} from "./queue-contract.ts";

export type { SqsCapabilities, SqsConnection } from "./queue-contract.ts";

/** What SQS does and no emulator shows, so that no test against one can cover it. */
export const notShownByEmulators: readonly string[] = Object.freeze([
  "permissions: AccessDenied never comes, and the Policy of a queue holds nobody off",
  "standard queues: a message is never received twice without cause, and seldom out of order",
  "fair queues: SQS's own fairness was not measured; its thresholds are approximate",
  "eventual consistency: counts are exact at once, and a short poll asks all of the queue",
  "limits of time: a queue can be purged twice within 60 seconds and created anew right after it was deleted",
  "limits of number: OverLimit for 120,000 messages in flight, throttling of FIFO queues",
  "encryption by KMS: its errors never come",
]);

/** Describes what keelson relies on SQS for, as tests with the real AWS SDK. */
export function describeSqsContract(
  name: string,
  connect: () => Promise<SqsConnection>,
  capabilities: SqsCapabilities,
): void {
  describe(`${name} as SQS`, () => {
    let connection: SqsConnection;
    const queues = contractQueues(() => connection);

    beforeAll(async () => {
      connection = await connect();
    });
    afterAll(async () => {
      await queues.deleteAll();
      await connection.close();
    });

    describeQueues(queues);
    describeMessages(queues, capabilities);
    describeBatches(queues, capabilities);
    describeFifoQueues(queues, capabilities);
    describeFairQueues(queues, capabilities);
    describeDeadLetters(queues, capabilities);
  });
}

function describeQueues(queues: ContractQueues): void {
  const { client, createNamed, create, createFifo, attributesOf, send, receive } = queues;

  describe("queues", () => {
    test("a queue is found by its name, its prefix and its address", async () => {
      const QueueName = `${queues.base}-${fresh()}`;
      const QueueUrl = await createNamed(QueueName, { VisibilityTimeout: "7" });
      expect((await client().send(new GetQueueUrlCommand({ QueueName }))).QueueUrl).toBe(QueueUrl);
      expect(
        (await client().send(new ListQueuesCommand({ QueueNamePrefix: QueueName }))).QueueUrls,
      ).toEqual([QueueUrl]);
      expect(await attributesOf(QueueUrl)).toMatchObject({
        QueueArn: expect.stringMatching(`^arn:aws:sqs:us-east-1:000000000000:${QueueName}$`),
        VisibilityTimeout: "7",
        DelaySeconds: "0",
        MessageRetentionPeriod: "345600",
        ReceiveMessageWaitTimeSeconds: "0",
        ApproximateNumberOfMessages: "0",
        ApproximateNumberOfMessagesNotVisible: "0",
        ApproximateNumberOfMessagesDelayed: "0",
      });
      const some = new GetQueueAttributesCommand({
        QueueUrl,
        AttributeNames: ["VisibilityTimeout"],
      });
      expect((await client().send(some)).Attributes).toEqual({ VisibilityTimeout: "7" });
    });

    test("created again with equal attributes it is the same, with others it is refused", async () => {
      const QueueName = `${queues.base}-${fresh()}`;
      const url = await createNamed(QueueName, { VisibilityTimeout: "7" });
      await send(url, "kept");
      expect(await createNamed(QueueName, { VisibilityTimeout: "7" })).toBe(url);
      expect(await createNamed(QueueName)).toBe(url);
      expect(await refused(createNamed(QueueName, { VisibilityTimeout: "8" }))).toBe(
        "QueueNameExists",
      );
      expect(bodies(await receive(url))).toEqual(["kept"]);
    });

    test("attributes can be changed", async () => {
      const QueueUrl = await create();
      await client().send(
        new SetQueueAttributesCommand({ QueueUrl, Attributes: { VisibilityTimeout: "9" } }),
      );
      expect(await attributesOf(QueueUrl)).toMatchObject({
        VisibilityTimeout: "9",
        DelaySeconds: "0",
      });
    });

    test("a FIFO queue is one by its name and its attribute", async () => {
      expect(await attributesOf(await createFifo())).toMatchObject({
        FifoQueue: "true",
        ContentBasedDeduplication: "false",
      });
      expect(await refused(createNamed(`${queues.base}-${fresh()}.fifo`))).toBe(
        "InvalidParameterValue",
      );
      expect(await refused(createNamed(`${queues.base}-${fresh()}`, { FifoQueue: "true" }))).toBe(
        "InvalidParameterValue",
      );
    });

    test("a queue that is not there, or no more, is an error of the SDK's own class", async () => {
      const QueueUrl = await create();
      await client().send(new DeleteQueueCommand({ QueueUrl }));
      const looking = client().send(new GetQueueUrlCommand({ QueueName: `${queues.base}-none` }));
      await expect(looking).rejects.toBeInstanceOf(QueueDoesNotExist);
      expect(await refused(send(QueueUrl, "x"))).toBe("QueueDoesNotExist");
      expect(await refused(receive(QueueUrl))).toBe("QueueDoesNotExist");
      expect(await refused(attributesOf(QueueUrl))).toBe("QueueDoesNotExist");
    });

    test("a queue that is purged has no messages", async () => {
      const QueueUrl = await create();
      await send(QueueUrl, "x");
      await client().send(new PurgeQueueCommand({ QueueUrl }));
      expect(await receive(QueueUrl)).toEqual([]);
    });

    test("wrong names and attributes are refused", async () => {
      expect(await refused(createNamed("a b"))).toBe("InvalidParameterValue");
      expect(await refused(create({ Nonsense: "1" }))).toBe("InvalidAttributeName");
    });
  });
}
