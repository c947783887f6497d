import { BatchProcessor, EventType, processPartialResponse, SqsFifoPartialProcessorAsync } from "@aws-lambda-powertools/batch";
import type { SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import type { QueueMessage } from "../events/message-queue.ts";
import { processMessage } from "../run/process-message.ts";
import type { Runtime } from "../run/runtime.ts";
import { measured } from "./lambda-runtime.ts";
import { type TimedContext, timeLeft } from "./time-left.ts";

export { createLambdaRuntime, loadSdk, openMeasuring } from "./lambda-runtime.ts";

/** Processes the messages of one invocation: those of an ordered queue in their order. */
export function consumeBatch(runtime: Runtime, event: SQSEvent, context: TimedContext): Promise<SQSBatchResponse> {
  const consumed = consume(runtime, event, context);
  return runtime.metrics === undefined ? consumed : measured(runtime, consumed);
}

async function consume(runtime: Runtime, event: SQSEvent, context: TimedContext): Promise<SQSBatchResponse> {
  if (runtime.log.isSampling) runtime.log.refreshSampling();
  const time = timeLeft(context, runtime.clock);
  const adapters = runtime.opened ?? (await runtime.adapters());
  const messaging = adapters.messaging.value ?? (await adapters.messaging.open());
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
}

function messageOf({ messageId, body, receiptHandle, attributes }: SQSRecord): QueueMessage {
  return {
    id: messageId,
    body,
    receipt: receiptHandle,
    group: attributes.MessageGroupId,
    receives: Number(attributes.ApproximateReceiveCount),
    sentMs: Number(attributes.SentTimestamp) || undefined, // who calls the function by hand may leave it out
  };
}
