import type {
  ALBEvent,
  APIGatewayProxyEvent,
  APIGatewayProxyEventV2,
  DynamoDBStreamEvent,
  ScheduledEvent,
  SQSEvent,
} from "aws-lambda";
import { httpEvents } from "./lambda-http-events.ts";
import { type LambdaMessages, type LambdaRows, recordEvents } from "./lambda-records.ts";
import type { LambdaGatewayRequest, LambdaRequest } from "./lambda-request.ts";

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
