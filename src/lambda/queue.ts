import type { SQSBatchResponse, SQSEvent } from "aws-lambda";
import type { Server } from "../server/server.ts";
import { prepareLambda } from "./bind.ts";
import type { TimedContext } from "./time-left.ts";

/** A Lambda function for batches of SQS. */
export type LambdaQueueHandler = (event: SQSEvent, context: TimedContext) => Promise<SQSBatchResponse>;

/**
 * Makes one Lambda function that consumes events and runs jobs, from the queues of either. It answers with the messages that
 * have to come again, so the event source mapping needs `ReportBatchItemFailures`; of an ordered queue what stands behind a
 * message that failed comes again with it. The queues' visibility timeout has to be longer than the function's time.
 *
 * @example
 * export const queue = lambdaQueue(server);
 */
export function lambdaQueue(server: Server): LambdaQueueHandler {
  const begin = prepareLambda(server, () => import("./consume-batch.ts"));
  return async (event, context) => {
    const { loaded, runtime } = await begin();
    return loaded.consumeBatch(runtime, event, context);
  };
}
