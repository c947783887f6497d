import type { Message, QueueAttributeName, SQSClient } from "@aws-sdk/client-sqs";
import { lazy } from "../../base/process/lazy.ts";
import { serviceSizes } from "../../base/sizes/service-sizes.ts";
import {
  backoffMs,
  isOrdered,
  type MessageQueue,
  type QueueMessage,
} from "../../parts/messages/message-queue.ts";
import { longestMessageMs } from "../../parts/once/claim.ts";
import { isInstrumented, type MessagingSdk } from "../clients/client-options.ts";
import { isFinalSendError } from "./refusal.ts";

/** Visibility timeout of received messages, in seconds. */
export const visibilitySeconds = 30;
const longestVisibilitySeconds = 43_200;
const longestDelaySeconds = 900;

/** Opens an SQS queue by its name or URL. Reads its URL and attributes once. */
export function sqsQueue(
  sdk: MessagingSdk,
  client: SQSClient,
  nameOrUrl: string,
  holds?: MessageQueue["holds"],
): MessageQueue {
  const name = queueName(nameOrUrl);
  const { open: url } = lazy(async () =>
    nameOrUrl.includes("://") ? nameOrUrl : urlOf(sdk, client, name),
  );
  const attributes = async (...AttributeNames: QueueAttributeName[]) => {
    const QueueUrl = await url();
    const command = new sdk.GetQueueAttributesCommand({ QueueUrl, AttributeNames });
    const { Attributes = {} } = await client.send(command);
    return Attributes;
  };
  const { redrive, redeliveryMs } = redelivery(attributes);
  const { open: deadLetters } = lazy(async () => {
    const name = (await redrive())?.name;
    return name === undefined ? undefined : urlOf(sdk, client, name);
  });
  const queue: MessageQueue = {
    name,
    isOrdered: isOrdered(name),
    isTraced: isInstrumented(client),
    holds,
    url,
    send: async (body, { group, deduplicationId }) => {
      const command = new sdk.SendMessageCommand({
        QueueUrl: await url(),
        MessageBody: body,
        MessageGroupId: group,
        MessageDeduplicationId: deduplicationId,
      });
      return String((await client.send(command)).MessageId);
    },
    sendLater: async (body, group, afterMs) => {
      const DelaySeconds = Math.min(longestDelaySeconds, Math.ceil(afterMs / 1_000));
      const message = { MessageBody: body, MessageGroupId: group, DelaySeconds };
      await client.send(new sdk.SendMessageCommand({ QueueUrl: await url(), ...message }));
    },
    isFinal: isFinalSendError,
    receive: async () => {
      const command = new sdk.ReceiveMessageCommand({
        QueueUrl: await url(),
        MaxNumberOfMessages: 10,
        WaitTimeSeconds: 0,
        VisibilityTimeout: visibilitySeconds,
        MessageSystemAttributeNames: [...systemAttributes],
      });
      return ((await client.send(command)).Messages ?? []).map(queueMessage);
    },
    remove: async (ReceiptHandle) => {
      await client.send(new sdk.DeleteMessageCommand({ QueueUrl: await url(), ReceiptHandle }));
    },
    changeVisibility: async (ReceiptHandle, forMs) => {
      const VisibilityTimeout = Math.min(longestVisibilitySeconds, Math.ceil(forMs / 1000));
      const change = { QueueUrl: await url(), ReceiptHandle, VisibilityTimeout };
      await client.send(new sdk.ChangeMessageVisibilityCommand(change));
    },
    maxReceives: async () => (await redrive())?.maxReceives,
    redeliveryMs,
    deadLetter: async ({ id, body, receipt, group }, reason) => {
      const QueueUrl = await deadLetters();
      if (QueueUrl === undefined) return false;
      const MessageAttributes = reasonAttributes(body, reason);
      const input = { QueueUrl, MessageBody: body, MessageGroupId: group, MessageAttributes };
      const ordered = isOrdered(QueueUrl) ? { MessageDeduplicationId: `dead-${id}` } : {};
      await client.send(new sdk.SendMessageCommand({ ...input, ...ordered }));
      await queue.remove(receipt);
      return true;
    },
    size: async () => {
      const found = await attributes(
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesDelayed",
      );
      return {
        visible: Number(found.ApproximateNumberOfMessages),
        hidden:
          Number(found.ApproximateNumberOfMessagesNotVisible) +
          Number(found.ApproximateNumberOfMessagesDelayed),
      };
    },
  };
  return queue;
}

/** Message attribute of a dead letter: the error of its last attempt. */
export const reasonAttribute = "keelson-reason";
const longestReason = 1_000;

/** A reason that SQS would refuse, or for which a large message has no room, is left out. */
function reasonAttributes(body: string, reason: string) {
  const text = reason
    .slice(0, longestReason)
    .replaceAll(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd]/g, " ")
    .trim();
  const [DataType, mostBytes] = ["String", serviceSizes.sqsMessage.maxBytes];
  const bytes = Buffer.byteLength(`${body}${reasonAttribute}${DataType}${text}`);
  if (text === "" || bytes > mostBytes) return undefined;
  return { [reasonAttribute]: { DataType, StringValue: text } };
}

type Attributes = Partial<Record<QueueAttributeName, string>>;

function redelivery(attributes: (...names: QueueAttributeName[]) => Promise<Attributes>) {
  const { open: settings } = lazy(() =>
    attributes("RedrivePolicy", "VisibilityTimeout", "MessageRetentionPeriod"),
  );
  const redrive = async () => redriveOf(await settings());
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

/** Returns where and when SQS moves messages that fail, if the queue has a dead-letter queue. */
export function redriveOf({ RedrivePolicy = "{}" }: Attributes) {
  const { deadLetterTargetArn: arn, maxReceiveCount } = JSON.parse(RedrivePolicy) as {
    readonly deadLetterTargetArn?: string;
    readonly maxReceiveCount?: number | string;
  };
  if (arn === undefined) return undefined;
  const name = arn.slice(arn.lastIndexOf(":") + 1);
  return { name, maxReceives: Number(maxReceiveCount) };
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
  const { MessageGroupId, ApproximateReceiveCount = 1, SentTimestamp } = Attributes;
  return {
    id: String(MessageId),
    body: String(Body),
    receipt: String(ReceiptHandle),
    group: MessageGroupId,
    receives: Number(ApproximateReceiveCount),
    sentMs: SentTimestamp === undefined ? undefined : Number(SentTimestamp),
  };
}

export function queueName(nameOrUrl: string): string {
  return nameOrUrl.slice(nameOrUrl.lastIndexOf("/") + 1);
}

export function deadQueueName(name: string): string {
  return name.endsWith(".fifo") ? `${name.slice(0, -5)}-dead.fifo` : `${name}-dead`;
}

/** @throws Error that names the queue if it does not exist. */
export async function urlOf(
  { GetQueueUrlCommand }: Pick<MessagingSdk, "GetQueueUrlCommand">,
  client: SQSClient,
  name: string,
): Promise<string> {
  try {
    return String((await client.send(new GetQueueUrlCommand({ QueueName: name }))).QueueUrl);
  } catch (cause) {
    if (!(cause instanceof Error) || cause.name !== "QueueDoesNotExist") throw cause;
    const fix =
      "deploy it, or set KEELSON_EVENT_QUEUE, KEELSON_JOB_QUEUE, KEELSON_FAIR_JOB_QUEUE or KEELSON_RECEIVED_QUEUE";
    throw new Error(`the queue ${name} does not exist; ${fix}`, { cause });
  }
}
