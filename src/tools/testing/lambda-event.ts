import type {
  ALBEvent,
  APIGatewayProxyEvent,
  APIGatewayProxyEventV2,
  Context,
  DynamoDBStreamEvent,
  ScheduledEvent,
  SQSEvent,
} from "aws-lambda";
import type { SharedEvent } from "../../parts/messages/envelope.ts";
import type { JobMessage } from "../../parts/messages/job-message.ts";
import { httpEvents, type LambdaGatewayRequest, type LambdaRequest } from "./lambda-http-events.ts";

/** Inputs (`of`) of {@link lambdaEvent} and types of the created events (`event`), by trigger. */
export interface LambdaEvents {
  readonly restApi: { readonly of: LambdaGatewayRequest; readonly event: APIGatewayProxyEvent };
  /** HTTP API with payload format 2.0. */
  readonly httpApi: { readonly of: LambdaGatewayRequest; readonly event: APIGatewayProxyEventV2 };
  /** HTTP API with payload format 1.0. */
  readonly httpApiV1: { readonly of: LambdaGatewayRequest; readonly event: APIGatewayProxyEvent };
  readonly functionUrl: { readonly of: LambdaRequest; readonly event: APIGatewayProxyEventV2 };
  readonly loadBalancer: { readonly of: LambdaRequest; readonly event: ALBEvent };
  /** Load balancer whose target group uses multi-value headers. */
  readonly loadBalancerMultiValue: { readonly of: LambdaRequest; readonly event: ALBEvent };
  readonly sqs: { readonly of: LambdaMessages; readonly event: SQSEvent };
  readonly dynamoDbStream: { readonly of: LambdaRows; readonly event: DynamoDBStreamEvent };
  readonly schedule: {
    readonly of: Readonly<Record<never, never>>;
    readonly event: ScheduledEvent;
  };
}

/** Trigger of a Lambda function. */
export type LambdaTrigger = keyof LambdaEvents;

/**
 * Creates the event that a trigger sends to a Lambda function.
 *
 * @example
 * const answer = await lambdaHttp(server)(lambdaEvent("httpApi", { path: "/files?tag=a" }), lambdaContext());
 */
export function lambdaEvent<Trigger extends LambdaTrigger>(
  trigger: Trigger,
  of: LambdaEvents[Trigger]["of"],
): LambdaEvents[Trigger]["event"] {
  return makers[trigger](of);
}

const makers: {
  readonly [Trigger in LambdaTrigger]: (
    of: LambdaEvents[Trigger]["of"],
  ) => LambdaEvents[Trigger]["event"];
} = { ...httpEvents, sqs: sqsEvent, dynamoDbStream: streamEvent, schedule: scheduleEvent };

/** Options of {@link lambdaContext}. */
export interface LambdaContextOptions {
  /** Time until the invocation's timeout, in milliseconds of real time. Default 30,000. */
  readonly timeoutMs?: number;
  /** ID of the invocation. Default: a random UUID. */
  readonly awsRequestId?: string;
  /** Name of the function. Default `test`. */
  readonly functionName?: string;
  /** Tenant of the invocation, as in Lambda's tenant isolation mode. Default: no tenant. */
  readonly tenantId?: string;
}

/**
 * Creates the context of a Lambda invocation.
 *
 * @example
 * await handler(event, lambdaContext({ timeoutMs: 3_000 }));
 */
export function lambdaContext(options: LambdaContextOptions = {}): Context {
  const { timeoutMs = 30_000, functionName = "test", tenantId } = options;
  const { awsRequestId = crypto.randomUUID() } = options;
  const endsMs = performance.now() + timeoutMs;
  return {
    callbackWaitsForEmptyEventLoop: true,
    functionName,
    functionVersion: "$LATEST",
    invokedFunctionArn: `arn:aws:lambda:us-east-1:123456789012:function:${functionName}`,
    memoryLimitInMB: "1024",
    awsRequestId,
    logGroupName: `/aws/lambda/${functionName}`,
    logStreamName: "2026/01/01/[$LATEST]0123456789abcdef0123456789abcdef",
    tenantId,
    getRemainingTimeInMillis: () => Math.max(0, Math.floor(endsMs - performance.now())),
    done() {},
    fail() {},
    succeed() {},
  };
}

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

function queueOf(message: Message | undefined) {
  return jobIdOf(message) === undefined ? "keelson-events" : "keelson-jobs.fifo";
}

function jobIdOf(message: Message | undefined) {
  return typeof message === "object" && "jobId" in message ? message.jobId : undefined;
}

/** Wraps an event in the EventBridge envelope, because the bus's rule sends the whole envelope. */
function bodyOf(message: Message, sentMs: number) {
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
