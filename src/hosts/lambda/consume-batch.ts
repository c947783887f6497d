import type { SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import { processMessage } from "../../app/run/process-message.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { isOrdered, type QueueMessage } from "../../parts/messages/message-queue.ts";
import { measured } from "../lambda-http/lambda-runtime.ts";
import { type TimedContext, timeLeft } from "../lambda-http/time-left.ts";

export { createLambdaRuntime, loadSdk, openMeasuring } from "../lambda-http/lambda-runtime.ts";

/**
 * Processes the messages of one invocation concurrently; messages of one group on an ordered queue
 * run in sequence.
 */
export function consumeBatch(
  runtime: Runtime,
  event: SQSEvent,
  context: TimedContext,
): Promise<SQSBatchResponse> {
  const consumed = consume(runtime, event, context);
  return runtime.metrics === undefined ? consumed : measured(runtime, consumed);
}

async function consume(
  runtime: Runtime,
  event: SQSEvent,
  context: TimedContext,
): Promise<SQSBatchResponse> {
  if (runtime.log.isSampling) runtime.log.refreshSampling();
  const time = timeLeft(context, runtime.clock);
  const adapters = runtime.adapters.all.value ?? (await runtime.adapters.open());
  const messaging = adapters.messaging.value ?? (await adapters.messaging.open());
  const handle = async (record: SQSRecord) => {
    const name = record.eventSourceARN.slice(record.eventSourceARN.lastIndexOf(":") + 1);
    const queue =
      [messaging.events, messaging.jobs].find((known) => known.name === name) ??
      messaging.queue(name);
    if (time.isOverIn(0)) throw new Error("no time is left to begin with it");
    const { kind } = await processMessage(runtime, adapters, queue, messageOf(record), {
      deadlineMs: time.deadlineMs,
    });
    if (kind === "later") throw new Error("it comes again");
  };
  const groups = [
    ...Map.groupBy(event.Records, (record) => orderedGroup(record) ?? record).values(),
  ];
  const left = await Promise.all(groups.map((group) => leftOf(group, handle)));
  return { batchItemFailures: left.flat().map(({ messageId }) => ({ itemIdentifier: messageId })) };
}

/**
 * Returns the group of a message on an ordered queue. A standard queue's groups serve only
 * fairness, so a failed message there does not block others.
 */
function orderedGroup({ eventSourceARN, attributes }: SQSRecord): string | undefined {
  return isOrdered(eventSourceARN) ? attributes.MessageGroupId : undefined;
}

/**
 * Handles records in sequence until one fails. Returns the failed record and all after it, to
 * retry.
 */
async function leftOf(
  group: readonly SQSRecord[],
  handle: (record: SQSRecord) => Promise<void>,
): Promise<readonly SQSRecord[]> {
  for (const [index, record] of group.entries()) {
    try {
      await handle(record);
    } catch {
      return group.slice(index); // processMessage logs its failures
    }
  }
  return [];
}

function messageOf({ messageId, body, receiptHandle, attributes }: SQSRecord): QueueMessage {
  return {
    id: messageId,
    body,
    receipt: receiptHandle,
    group: attributes.MessageGroupId,
    receives: Number(attributes.ApproximateReceiveCount),
    sentMs: Number(attributes.SentTimestamp) || undefined, // absent in hand-written events
  };
}
