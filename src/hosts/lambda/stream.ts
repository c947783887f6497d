import type { DynamoDBBatchResponse, DynamoDBStreamEvent } from "aws-lambda";
import type { Server } from "../../app/server/server.ts";
import { prepareLambda } from "../lambda-http/bind.ts";
import { marked } from "../lambda-http/function-mark.ts";
import type { TimedContext } from "../lambda-http/time-left.ts";

/** Lambda function for DynamoDB stream batches. */
export type LambdaStreamHandler = (
  event: DynamoDBStreamEvent,
  context: TimedContext,
) => Promise<DynamoDBBatchResponse>;

/**
 * Creates a Lambda function for the stream of the outbox table. It dispatches events that were
 * committed but not dispatched, because the function ended or the event bus failed. Usually no row
 * is left, which costs one read per shard. The function returns the first record that failed, so
 * the event source mapping needs `ReportBatchItemFailures`. The stream view type `KEYS_ONLY` is
 * enough. {@link lambdaSweep} dispatches rows that the stream no longer retries.
 *
 * @example
 * export const stream = lambdaStream(server);
 */
export function lambdaStream(server: Server): LambdaStreamHandler {
  const invoked = prepareLambda(server, () => import("./dispatch-records.ts"));
  const dispatch: LambdaStreamHandler = async (event, context) => {
    const { loaded, runtime } = invoked.value ?? (await invoked.open());
    return loaded.dispatchRecords(runtime, event, context);
  };
  return marked(dispatch, { kind: "stream" });
}
