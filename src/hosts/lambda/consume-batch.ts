import type { SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import { processMessage } from "../../app/run/process-message.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import type { MessageQueue, QueueMessage } from "../../parts/messages/message-queue.ts";
import type { TimeLeft } from "./dispatch-records.ts";

export { createLambdaRuntime, loadSdk, openMeasuring } from "../lambda-http/lambda-runtime.ts";

/**
 * Processes the messages of one invocation concurrently; messages of one group on an ordered queue
 * run in sequence.
 */
export async function consumeBatch(
  runtime: Runtime,
  event: SQSEvent,
  time: TimeLeft,
): Promise<SQSBatchResponse> {
  if (!Array.isArray(event?.Records) || !event.Records.every(isOfSqs))
    throw new TypeError("lambdaQueue: the event is not of SQS; check the function's trigger");
  const adapters = runtime.adapters.all.value ?? (await runtime.adapters.open());
  const messaging = adapters.messaging.value ?? (await adapters.messaging.open());
  const handle = async (queue: MessageQueue, record: SQSRecord) => {
    if (time.isOverIn(0)) return 0;
    const done = await processMessage(runtime, adapters, queue, messageOf(record), {
      deadlineMs: time.deadlineMs,
    });
    return done.kind === "later" ? done.afterMs + behindFirstMs : undefined;
  };
  const within = (work: Promise<unknown>) =>
    time.deadlineMs === undefined
      ? work
      : waitFor(work, time.deadlineMs - runtime.clock.now() - answerMs);
  // Only an event written by hand has records of several queues.
  const records = Map.groupBy(event.Records, ({ eventSourceARN }) => eventSourceARN);
  const left = await Promise.all(
    [...records].flatMap(([arn, of]) => {
      const name = arn.slice(arn.lastIndexOf(":") + 1);
      const queue =
        [messaging.events, messaging.jobs, messaging.fairJobs, messaging.others].find(
          (known) => known.name === name,
        ) ?? messaging.queue(name);
      // A standard queue's groups serve only fairness, so a failed message does not block others.
      const groups = Map.groupBy(
        of,
        (record) => (queue.isOrdered ? record.attributes.MessageGroupId : undefined) ?? record,
      );
      return [...groups.values()].map((group) => leftOf(queue, group, handle, within));
    }),
  );
  return { batchItemFailures: left.flat().map(({ messageId }) => ({ itemIdentifier: messageId })) };
}

function isOfSqs(record: Partial<SQSRecord> | null): boolean {
  return /^arn:[^:]*:sqs:/.test(String(record?.eventSourceARN));
}

/** Extra invisibility of messages after a retried one in their group, in milliseconds. */
const behindFirstMs = 1_000;
/** Time before the function's timeout in which it answers, in milliseconds. */
const answerMs = 200;

/**
 * Handles records until one must be retried. Returns it and all after it. SQS returns no message of
 * a group while another one is invisible, so those after it are handed back too.
 *
 * @param handle - returns for how long they are invisible, in milliseconds; 0 if no time was left.
 * @param within - waits for a promise that never rejects, but not until the function's timeout.
 */
async function leftOf(
  queue: MessageQueue,
  group: readonly SQSRecord[],
  handle: (queue: MessageQueue, record: SQSRecord) => Promise<number | undefined>,
  within: (work: Promise<unknown>) => Promise<unknown>,
): Promise<readonly SQSRecord[]> {
  for (const [index, record] of group.entries()) {
    const behindMs = await handle(queue, record);
    if (behindMs === undefined) continue;
    const left = group.slice(index);
    // A retried message was handed back already; one that no time was left for was not. If this
    // fails or is late, SQS redelivers them when their visibility timeout expires.
    const visible = left.slice(behindMs === 0 ? 0 : 1);
    await within(
      Promise.allSettled(
        visible.map(({ receiptHandle }) => queue.changeVisibility(receiptHandle, behindMs)),
      ),
    );
    return left;
  }
  return [];
}

function waitFor(work: Promise<unknown>, limitMs: number): Promise<unknown> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, limitMs);
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
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
