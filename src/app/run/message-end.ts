import { errorLog } from "../../base/errors/describe.ts";
import { isPermanent } from "../../base/errors/errors.ts";
import {
  backoffMs,
  type MessageQueue,
  type QueueMessage,
} from "../../parts/messages/message-queue.ts";
import { untriedText } from "../../parts/messages/waited.ts";
import { leaseMs } from "../../parts/once/claim.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { type EventOutcome, waitingOf } from "./event-outcome.ts";
import type { GroupLine } from "./group-line.ts";
import type { MayWait } from "./send-again.ts";

export type Processed =
  /** The caller acknowledges the message. */
  | { readonly kind: "done" }
  /** The message was handed back. The queue redelivers it after `afterMs`. */
  | { readonly kind: "later"; readonly afterMs: number; readonly reason?: string }
  /** The message is in the dead-letter queue, and the reason in the log. */
  | { readonly kind: "dead-lettered"; readonly reason: string };

export interface MessageFacts {
  /** `undefined` if the message could not be read. */
  readonly kind: "event" | "job" | "delivery" | undefined;
  /** Number of attempts, this one included. */
  readonly receives: number;
  readonly traceId?: string | undefined;
  /** For the log. Empty if the message could not be read. */
  readonly ids: Readonly<Record<string, string>>;
}

interface EndingMessage {
  readonly queue: MessageQueue;
  readonly message: QueueMessage;
  /** `undefined` if the message could not be read. */
  readonly read: MayWait | undefined;
  /** Of a job with an `order` and a limit. */
  readonly line?: GroupLine | undefined;
}

/** Acknowledges, hands back, sends again or gives up a message. Never throws. */
export async function endMessage(
  runtime: Pick<Runtime, "clock" | "log" | "metrics" | "server">,
  adapters: Pick<Adapters, "claims" | "outbox">,
  { queue, message, read = {}, line }: EndingMessage,
  outcome: EventOutcome,
  facts: MessageFacts,
): Promise<Processed> {
  if (outcome.kind === "processed" || outcome.kind === "skipped") {
    const hasLeft = await (line?.leave() ?? true);
    // The message is redelivered, and then skipped.
    return hasLeft ? { kind: "done" } : handBack(runtime, queue, message, backoffMs[0]);
  }
  const waiting = await waitOf(queue, message, outcome, facts);
  if (waiting !== undefined) {
    const { sendAgain } = await import("./send-again.ts");
    const isRunning = waiting.mustWait !== true;
    const received = { message, read, line, consumed: outcome.consumed, isRunning };
    const afterMs = await sendAgain(runtime, adapters, queue, received, waiting.afterMs);
    return afterMs === undefined ? { kind: "done" } : handBack(runtime, queue, message, afterMs);
  }
  if (outcome.kind === "handed-back") return handBack(runtime, queue, message, outcome.afterMs);
  const failed = await fail(runtime, queue, message, outcome, facts);
  // If this fails, the next jobs find out that it has gone.
  await (failed.kind === "later" || line?.leave());
  return failed;
}

/**
 * Returns the outcome for which a message is sent again. Either it waits for a limit, and no failure
 * may be retried. Or another process has been running it for so long that SQS would move it to the
 * dead-letter queue at its next receive.
 */
async function waitOf(
  queue: MessageQueue,
  message: QueueMessage,
  outcome: EventOutcome,
  { receives }: MessageFacts,
) {
  const waiting = waitingOf(outcome);
  const isOver = (count: number) => isLast(queue, count).catch(() => false);
  if (outcome.kind !== "handed-back")
    return waiting !== undefined && (await isOver(receives)) ? waiting : undefined;
  if (waiting !== undefined || queue.isOrdered || outcome.afterMs < leastAliveMs) return waiting;
  return (await isOver(message.receives)) ? outcome : undefined;
}

/**
 * Least time left of a lease that its run has renewed since the message was last received. A run
 * with less may have crashed: only SQS's count of receives stops a message that crashes processes.
 */
const leastAliveMs = leaseMs / 2;

async function isLast(queue: MessageQueue, receives: number): Promise<boolean> {
  const most = await queue.maxReceives();
  return most !== undefined && receives >= most;
}

/** Retries a message. After the last attempt, or a permanent error, it becomes a dead letter. */
async function fail(
  runtime: Pick<Runtime, "log" | "metrics">,
  queue: MessageQueue,
  message: QueueMessage,
  { error, reason: firstReason }: Extract<EventOutcome, { readonly kind: "failed" }>,
  { kind, receives, traceId, ids }: MessageFacts,
): Promise<Processed> {
  const reason = String(errorLog(error).data["message"]);
  const trace = traceId === undefined ? {} : { trace_id: traceId };
  const facts = { queue: queue.name, messageId: message.id, receives, reason, ...trace, ...ids };
  try {
    const isOver = (await isLast(queue, receives)) || isPermanent(error);
    // Once it is moved back, by whatever means, consumers that have failed run again.
    const untried = () => ({ ...message, body: untriedText(message.body) });
    const deadReason = firstReason ?? reason;
    if (isOver && (await queue.deadLetter(untried(), deadReason))) {
      runtime.log.error("queue.dead_lettered", { ...facts, reason: deadReason });
      runtime.metrics?.record("keelson.dead_letters", 1, { "keelson.kind": kind });
      return { kind: "dead-lettered", reason: deadReason };
    }
  } catch (failure) {
    runtime.log.error("queue.dead_letter_failed", { ...facts, failure: String(failure) });
  }
  // The cast is safe: the number of receives starts at 1.
  const afterMs = backoffMs[Math.min(receives, backoffMs.length) - 1] as number;
  runtime.log.warn("queue.retry", { ...facts, afterMs });
  return { ...(await handBack(runtime, queue, message, afterMs)), reason };
}

/** If handing back fails, the queue redelivers when the visibility timeout expires. */
async function handBack(
  runtime: Pick<Runtime, "log">,
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
