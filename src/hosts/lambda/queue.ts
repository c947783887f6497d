import type { SQSBatchResponse, SQSEvent } from "aws-lambda";
import type { Server } from "../../app/server/server.ts";
import { prepareLambda } from "../lambda-http/bind.ts";
import { marked } from "../lambda-http/function-mark.ts";
import type { TimedContext } from "../lambda-http/time-left.ts";

/** Lambda function for SQS batches. */
export type LambdaQueueHandler = (
  event: SQSEvent,
  context: TimedContext,
) => Promise<SQSBatchResponse>;

/**
 * Creates one Lambda function that consumes events and runs jobs, for both queues. It returns the
 * messages to retry, so the event source mapping needs `ReportBatchItemFailures`. On an ordered
 * queue, it also returns the messages after a failed one in the same group. Set the visibility
 * timeout of the queues to six times the function's timeout: the function does not extend it.
 *
 * @example
 * export const queue = lambdaQueue(server);
 */
export function lambdaQueue(server: Server): LambdaQueueHandler {
  const invoked = prepareLambda(server, () => import("./consume-batch.ts"));
  const consume: LambdaQueueHandler = async (event, context) => {
    const { loaded, runtime } = invoked.value ?? (await invoked.open());
    return loaded.consumeBatch(runtime, event, context);
  };
  return marked(consume, { kind: "queue" });
}
