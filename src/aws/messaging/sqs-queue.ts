import type { Message, SQSClient } from "@aws-sdk/client-sqs";
import { lazy } from "../../base/process/lazy.ts";
import {
  backoffMs,
  isOrdered,
  type MessageQueue,
  type QueueMessage,
} from "../../parts/messages/message-queue.ts";
import { longestMessageMs } from "../../parts/once/claim.ts";
import { isInstrumented } from "../clients/client-options.ts";
import { isFinalSendError } from "./send-message-failure.ts";

/** Visibility timeout of received messages, in seconds. */
export const visibilitySeconds = 30;
const longestVisibilitySeconds = 43_200;

/** Creates an SQS queue from its name or URL. Reads its URL and attributes once. */
export function sqsQueue(
  client: SQSClient,
  nameOrUrl: string,
  holds?: MessageQueue["holds"],
): MessageQueue {
  const name = queueName(nameOrUrl);
  const { open: url } = lazy(async () =>
    nameOrUrl.includes("://") ? nameOrUrl : urlOf(client, name),
  );
  const { redrive, redeliveryMs } = redelivery(client, url);
  const { open: deadLetters } = lazy(async () => {
    const arn = (await redrive())?.arn;
    return arn === undefined
      ? undefined
      : { arn, url: await urlOf(client, arn.slice(arn.lastIndexOf(":") + 1)) };
  });
  const queue: MessageQueue = {
    name,
    isTraced: isInstrumented(client),
    holds,
    url,
    send: async (body, { group, deduplicationId }) => {
      const { SendMessageCommand } = await sdk();
      const { MessageId } = await client.send(
        new SendMessageCommand({
          QueueUrl: await url(),
          MessageBody: body,
          MessageGroupId: group,
          MessageDeduplicationId: deduplicationId,
        }),
      );
      return String(MessageId);
    },
    isFinal: isFinalSendError,
    receive: async () => {
      const { ReceiveMessageCommand } = await sdk();
      const { Messages = [] } = await client.send(
        new ReceiveMessageCommand({
          QueueUrl: await url(),
          MaxNumberOfMessages: 10,
          WaitTimeSeconds: 0,
          VisibilityTimeout: visibilitySeconds,
          MessageSystemAttributeNames: [...systemAttributes],
        }),
      );
      return Messages.map(queueMessage);
    },
    remove: async (receipt) => {
      const { DeleteMessageCommand } = await sdk();
      await client.send(
        new DeleteMessageCommand({ QueueUrl: await url(), ReceiptHandle: receipt }),
      );
    },
    changeVisibility: async (receipt, forMs) => {
      const { ChangeMessageVisibilityCommand } = await sdk();
      const VisibilityTimeout = Math.min(longestVisibilitySeconds, Math.ceil(forMs / 1000));
      await client.send(
        new ChangeMessageVisibilityCommand({
          QueueUrl: await url(),
          ReceiptHandle: receipt,
          VisibilityTimeout,
        }),
      );
    },
    maxReceives: async () => (await redrive())?.maxReceives,
    redeliveryMs,
    deadLetter: async ({ id, body, receipt, group }) => {
      const dead = await deadLetters();
      if (dead === undefined) return false;
      const { SendMessageCommand } = await sdk();
      const input = { QueueUrl: dead.url, MessageBody: body, MessageGroupId: group };
      const ordered = isOrdered(dead.arn) ? { MessageDeduplicationId: `dead-${id}` } : {};
      await client.send(new SendMessageCommand({ ...input, ...ordered }));
      await queue.remove(receipt);
      return true;
    },
    size: async () => {
      const { GetQueueAttributesCommand } = await sdk();
      const { Attributes = {} } = await client.send(
        new GetQueueAttributesCommand({
          QueueUrl: await url(),
          AttributeNames: ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
        }),
      );
      return {
        visible: Number(Attributes["ApproximateNumberOfMessages"]),
        hidden: Number(Attributes["ApproximateNumberOfMessagesNotVisible"]),
      };
    },
  };
  return queue;
}

function redelivery(client: SQSClient, url: MessageQueue["url"]) {
  const { open: settings } = lazy(async () => {
    const { GetQueueAttributesCommand } = await sdk();
    const { Attributes = {} } = await client.send(
      new GetQueueAttributesCommand({
        QueueUrl: await url(),
        AttributeNames: ["RedrivePolicy", "VisibilityTimeout", "MessageRetentionPeriod"],
      }),
    );
    return Attributes;
  });
  const redrive = async () => {
    const { deadLetterTargetArn, maxReceiveCount } = JSON.parse(
      (await settings())["RedrivePolicy"] ?? "{}",
    ) as {
      readonly deadLetterTargetArn?: string;
      readonly maxReceiveCount?: number | string;
    };
    return deadLetterTargetArn === undefined
      ? undefined
      : { arn: deadLetterTargetArn, maxReceives: Number(maxReceiveCount) };
  };
  const redeliveryMs = lazy(async () => {
    try {
      const { VisibilityTimeout, MessageRetentionPeriod } = await settings();
      const keptMs = Number(MessageRetentionPeriod) * 1_000 || longestMessageMs;
      const attempts = (await redrive())?.maxReceives;
      if (attempts === undefined) return keptMs;
      // A retry waits for one of these; the timeout that `receive` sets is shorter.
      const hiddenMs = Math.max(Number(VisibilityTimeout ?? 0) * 1_000, ...backoffMs);
      return Math.min(keptMs, attempts * hiddenMs);
    } catch {
      return longestMessageMs; // a role may lack the permission
    }
  });
  return { redrive, redeliveryMs };
}

export const systemAttributes = Object.freeze([
  "ApproximateReceiveCount",
  "MessageGroupId",
  "SentTimestamp",
] as const);

export function queueMessage({
  MessageId,
  Body,
  ReceiptHandle,
  Attributes = {},
}: Message): QueueMessage {
  return {
    id: String(MessageId),
    body: String(Body),
    receipt: String(ReceiptHandle),
    group: Attributes["MessageGroupId"],
    receives: Number(Attributes["ApproximateReceiveCount"] ?? 1),
    sentMs:
      Attributes["SentTimestamp"] === undefined ? undefined : Number(Attributes["SentTimestamp"]),
  };
}

export function queueName(nameOrUrl: string): string {
  return nameOrUrl.slice(nameOrUrl.lastIndexOf("/") + 1);
}

/** Name of the dead-letter queue of a queue that keelson creates. */
export function deadQueueName(name: string): string {
  return name.endsWith(".fifo") ? `${name.slice(0, -5)}-dead.fifo` : `${name}-dead`;
}

/** @throws Error that names the queue if it does not exist. */
async function urlOf(client: SQSClient, name: string): Promise<string> {
  const { GetQueueUrlCommand } = await sdk();
  try {
    return String((await client.send(new GetQueueUrlCommand({ QueueName: name }))).QueueUrl);
  } catch (error) {
    if (!(error instanceof Error) || error.name !== "QueueDoesNotExist") throw error;
    throw new Error(
      `the queue ${name} does not exist; deploy it, or set KEELSON_EVENT_QUEUE or KEELSON_JOB_QUEUE`,
      {
        cause: error,
      },
    );
  }
}

function sdk() {
  return import("../clients/messaging-sdk.ts");
}
