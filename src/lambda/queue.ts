import type { SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import type { QueueMessage } from "../app/message-queue.ts";
import type { Server } from "../app/server.ts";
import { lambdaRuntime, prepareLambda } from "./bind.ts";
import { type TimedContext, timeLeft } from "./time-left.ts";

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
  prepareLambda(server);
  return async (event, context) => {
    // Loaded here, since other functions of the same bundle have no use for it.
    const [{ BatchProcessor, EventType, processPartialResponse, SqsFifoPartialProcessorAsync }, { processMessage }] =
      await Promise.all([import("@aws-lambda-powertools/batch"), import("../app/process-message.ts")]);
    const runtime = lambdaRuntime(server);
    const time = timeLeft(context, runtime.clock);
    const adapters = await runtime.adapters();
    const messaging = await adapters.messaging();
    const handle = async (record: SQSRecord) => {
      const name = record.eventSourceARN.slice(record.eventSourceARN.lastIndexOf(":") + 1);
      const queue = [messaging.events, messaging.jobs].find((known) => known.name === name) ?? messaging.queue(name);
      if (time.isOverIn(0)) throw new Error("no time is left to begin with it");
      const { kind } = await processMessage(runtime, adapters, queue, messageOf(record), { deadlineMs: time.deadlineMs });
      if (kind === "later") throw new Error("it comes again");
    };
    // The last failure is not the function's: what has to come again is in the answer.
    const options = { throwOnFullBatchFailure: false };
    const isOrdered = event.Records[0]?.eventSourceARN.endsWith(".fifo") === true;
    return isOrdered
      ? processPartialResponse(event, handle, new SqsFifoPartialProcessorAsync(), { ...options, skipGroupOnError: true })
      : processPartialResponse(event, handle, new BatchProcessor(EventType.SQS), options);
  };
}

function messageOf({ messageId, body, receiptHandle, attributes }: SQSRecord): QueueMessage {
  return {
    id: messageId,
    body,
    receipt: receiptHandle,
    group: attributes.MessageGroupId,
    receives: Number(attributes.ApproximateReceiveCount),
  };
}
