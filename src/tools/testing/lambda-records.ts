import type { DynamoDBStreamEvent, ScheduledEvent, SQSEvent } from "aws-lambda";
import type { SharedEvent } from "../../parts/messages/envelope.ts";
import type { JobMessage } from "../../parts/messages/job-message.ts";

const region = "us-east-1";
const account = "123456789012";

/** Messages of one queue. */
export interface LambdaMessages {
  /**
   * Messages, for example `app.events` or `app.jobs` of a test app. A string is used as the body
   * unchanged.
   */
  readonly messages: readonly (SharedEvent | JobMessage | string)[];
  /** Name of the queue. Default `keelson-jobs.fifo` for jobs, `keelson-events` for events. */
  readonly queue?: string;
}

/** Rows inserted into a table. */
export interface LambdaRows {
  readonly rows: readonly { readonly pk: string; readonly sk: string }[];
  /** Name of the table. Default `keelson-outbox`. */
  readonly table?: string;
}

export const recordEvents = {
  sqs: sqsEvent,
  dynamoDbStream: streamEvent,
  schedule: scheduleEvent,
};

function sqsEvent({ messages, queue = queueOf(messages[0]) }: LambdaMessages): SQSEvent {
  const sentMs = Date.now();
  const isOrdered = queue.endsWith(".fifo");
  return {
    Records: messages.map((message) => ({
      messageId: crypto.randomUUID(),
      receiptHandle: crypto.randomUUID(),
      body: bodyOf(message, sentMs),
      attributes: {
        ApproximateReceiveCount: "1",
        SentTimestamp: String(sentMs),
        SenderId: account,
        ApproximateFirstReceiveTimestamp: String(sentMs),
        ...(isOrdered && { MessageGroupId: jobIdOf(message) ?? "test" }),
      },
      messageAttributes: {},
      md5OfBody: "",
      eventSource: "aws:sqs",
      eventSourceARN: `arn:aws:sqs:${region}:${account}:${queue}`,
      awsRegion: region,
    })),
  };
}

function streamEvent({ rows, table = "keelson-outbox" }: LambdaRows): DynamoDBStreamEvent {
  return {
    Records: rows.map(({ pk, sk }, index) => ({
      eventID: crypto.randomUUID(),
      eventName: "INSERT",
      eventVersion: "1.1",
      eventSource: "aws:dynamodb",
      eventSourceARN: `arn:aws:dynamodb:${region}:${account}:table/${table}/stream/2026-01-01T00:00:00.000`,
      awsRegion: region,
      dynamodb: {
        Keys: { pk: { S: pk }, sk: { S: sk } },
        SequenceNumber: String(100_000_000_000 + index),
        StreamViewType: "KEYS_ONLY",
      },
    })),
  };
}

function scheduleEvent(): ScheduledEvent {
  return {
    ...envelopeOf("Scheduled Event", "aws.events", Date.now()),
    resources: [`arn:aws:events:${region}:${account}:rule/test`],
    detail: {},
  };
}

type Message = LambdaMessages["messages"][number];

function queueOf(message: Message | undefined): string {
  return jobIdOf(message) === undefined ? "keelson-events" : "keelson-jobs.fifo";
}

function jobIdOf(message: Message | undefined): string | undefined {
  return typeof message === "object" && "jobId" in message ? message.jobId : undefined;
}

/** Wraps an event in the EventBridge envelope, because the bus's rule sends the whole envelope. */
function bodyOf(message: Message, sentMs: number): string {
  if (typeof message === "string") return message;
  if ("jobId" in message) return JSON.stringify(message);
  return JSON.stringify({ ...envelopeOf(message.type, "keelson", sentMs), detail: message });
}

function envelopeOf<Type extends string>(type: Type, source: string, sentMs: number) {
  return {
    ...{ version: "0", id: crypto.randomUUID(), "detail-type": type, source, account, region },
    time: new Date(sentMs).toISOString(),
    resources: [] as string[],
  };
}
