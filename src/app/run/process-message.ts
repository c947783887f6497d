import { errorLog } from "../../base/errors/describe.ts";
import { isPermanent } from "../../base/errors/errors.ts";
import { type ReadMessage, readMessage } from "../../parts/messages/message-guard.ts";
import {
  backoffMs,
  type MessageQueue,
  type QueueMessage,
} from "../../parts/messages/message-queue.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { type ConsumeOptions, consumeEvent, runJob } from "./consume.ts";
import type { Consumed } from "./task.ts";

export type Processed =
  /** The caller acknowledges the message. */
  | { readonly kind: "done" }
  /** The message was handed back. The queue redelivers it after `afterMs`. */
  | { readonly kind: "later"; readonly afterMs: number; readonly reason?: string }
  /** The message is in the dead-letter queue, and the reason in the log. */
  | { readonly kind: "dead-lettered"; readonly reason: string };

/** Processes a message and returns its outcome. Never throws. */
export async function processMessage(
  runtime: Runtime,
  adapters: Adapters,
  queue: MessageQueue,
  message: QueueMessage,
  options: Pick<ConsumeOptions, "deadlineMs"> = {},
): Promise<Processed> {
  let read: ReadMessage | undefined;
  let outcome: Consumed;
  try {
    read = readMessage(message.body);
    outcome = await consume(runtime, adapters, queue, message, read, options);
  } catch (error) {
    outcome = { kind: "failed", error };
  }
  if (outcome.kind === "processed" || outcome.kind === "skipped") return { kind: "done" };
  if (outcome.kind === "handed-back") {
    return handBack(runtime, queue, message, outcome.afterMs);
  }
  return fail(runtime, queue, message, outcome.error, read);
}

async function consume(
  runtime: Runtime,
  adapters: Adapters,
  queue: MessageQueue,
  { id, receives: attempt, sentMs: sinceMs }: QueueMessage,
  read: ReadMessage,
  { deadlineMs }: Pick<ConsumeOptions, "deadlineMs">,
): Promise<Consumed> {
  const redelivery = queue.redeliveryMs.value ?? queue.redeliveryMs.open();
  const guard = runtime.messages.value ?? (await runtime.messages.open());
  await guard.admit(read, queue, id);
  const redeliveryMs = await redelivery;
  const options = { deadlineMs, attempt, sinceMs, parent: read.trace, redeliveryMs };
  return "job" in read
    ? runJob(runtime, adapters, read.job, options)
    : consumeEvent(runtime, adapters, read.event, options);
}

/**
 * Retries a failed message with backoff. After too many attempts, or a permanent error, moves it to
 * the dead-letter queue.
 */
async function fail(
  runtime: Runtime,
  queue: MessageQueue,
  message: QueueMessage,
  error: unknown,
  read: ReadMessage | undefined,
): Promise<Processed> {
  const reason = String(errorLog(error).data["message"]);
  const trace = read?.trace === undefined ? {} : { trace_id: read.trace.traceId };
  const ids = idsOf(read);
  const facts = {
    queue: queue.name,
    messageId: message.id,
    receives: message.receives,
    reason,
    ...trace,
    ...ids,
  };
  try {
    const most = await queue.maxReceives();
    const isLast = most !== undefined && message.receives >= most;
    if ((isLast || isPermanent(error)) && (await queue.deadLetter(message))) {
      runtime.log.error("queue.dead_lettered", facts);
      runtime.metrics?.record("keelson.dead_letters", 1, { "keelson.kind": kindOf(runtime, ids) });
      return { kind: "dead-lettered", reason };
    }
  } catch (failure) {
    runtime.log.error("queue.dead_letter_failed", { ...facts, failure: String(failure) });
  }
  // The cast is safe: the number of receives starts at 1.
  const afterMs = backoffMs[Math.min(message.receives, backoffMs.length) - 1] as number;
  runtime.log.warn("queue.retry", { ...facts, afterMs });
  return { ...(await handBack(runtime, queue, message, afterMs)), reason };
}

/** Hands a message back. On failure, the queue redelivers when the visibility timeout expires. */
async function handBack(
  runtime: Runtime,
  queue: MessageQueue,
  { id, receipt }: QueueMessage,
  afterMs: number,
): Promise<Extract<Processed, { kind: "later" }>> {
  try {
    await queue.changeVisibility(receipt, afterMs);
  } catch (error) {
    runtime.log.warn("queue.hand_back_failed", {
      queue: queue.name,
      messageId: id,
      reason: String(error),
    });
  }
  return { kind: "later", afterMs };
}

function kindOf(
  { deliveryJob }: Runtime,
  { event, job }: Readonly<Record<string, string>>,
): "event" | "job" | "delivery" | undefined {
  if (job === undefined) return event === undefined ? undefined : "event";
  return job === deliveryJob.name ? "delivery" : "job";
}

/** Returns the IDs in a message for the log. Empty if the message could not be read. */
function idsOf(read: ReadMessage | undefined): Record<string, string> {
  if (read === undefined) return {};
  const { origRequestId, causedBy, tenantId = "" } = "job" in read ? read.job : read.event;
  const own =
    "job" in read
      ? { job: read.job.name, jobId: read.job.jobId }
      : { event: read.event.type, eventId: read.event.eventId };
  return { origRequestId, causedBy, tenantId, ...own };
}
