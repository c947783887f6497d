import type {
  ALBEvent,
  APIGatewayProxyEvent,
  APIGatewayProxyEventV2,
  Context,
  DynamoDBStreamEvent,
  ScheduledEvent,
  SQSEvent,
} from "aws-lambda";
import { httpEvents, type LambdaGatewayRequest, type LambdaRequest } from "./lambda-http-events.ts";
import { type LambdaMessages, type LambdaRows, recordEvents } from "./lambda-records.ts";

/**
 * Inputs and events of {@link lambdaEvent}, by trigger: `of` is the input, `event` the type of the
 * created event.
 */
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
} = { ...httpEvents, ...recordEvents };

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
