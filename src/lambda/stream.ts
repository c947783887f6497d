import type { DynamoDBBatchResponse, DynamoDBStreamEvent } from "aws-lambda";
import type { Server } from "../server/server.ts";
import { prepareLambda } from "./bind.ts";
import type { TimedContext } from "./time-left.ts";

/** A Lambda function for batches of a DynamoDB stream. */
export type LambdaStreamHandler = (event: DynamoDBStreamEvent, context: TimedContext) => Promise<DynamoDBBatchResponse>;

/**
 * Makes a Lambda function for the stream of the outbox table: it dispatches the events whose function ended, or whose bus
 * failed, before they were. Mostly it finds nothing left to do, for one read a shard. It answers with the record to begin with the
 * next time, so the event source mapping needs `ReportBatchItemFailures`; the stream needs the keys only (`KEYS_ONLY`). Behind
 * it {@link lambdaSweep} finds what the stream has given up.
 *
 * @example
 * export const stream = lambdaStream(server);
 */
export function lambdaStream(server: Server): LambdaStreamHandler {
  const begin = prepareLambda(server, () => import("./dispatch-records.ts"));
  return async (event, context) => {
    const { loaded, runtime } = await begin();
    return loaded.dispatchRecords(runtime, event, context);
  };
}
