import { errorLog } from "../../base/errors/describe.ts";
import { serviceSizes } from "../../base/sizes/service-sizes.ts";
import type { Place } from "../../parts/limits/line.ts";
import { queuedRow } from "../../parts/messages/due-jobs.ts";
import type { JobMessage } from "../../parts/messages/job-message.ts";
import type { ReadMessage } from "../../parts/messages/message-guard.ts";
import type { MessageQueue, QueueMessage } from "../../parts/messages/message-queue.ts";
import { neverWaited, type Waited, waitingText, waitMs } from "../../parts/messages/waited.ts";
import type { CancellationReason } from "../../parts/once/claim-store.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Consumed } from "./event-outcome.ts";
import type { GroupLine } from "./group-line.ts";

/** A message of this server, or an event of others. */
export type MayWait = ReadMessage | { readonly waited?: Waited };

interface Received {
  readonly message: QueueMessage;
  readonly read: MayWait;
  /** Of a job with an `order` and a limit. */
  readonly line?: Pick<GroupLine, "wait"> | undefined;
  /** Of an event: its consumers that have run. Those that failed have no attempts left. */
  readonly consumed?: readonly Consumed[] | undefined;
  /** Whether another process is running it, so that its receives are not counted. */
  readonly isRunning?: boolean | undefined;
}

/**
 * Sends a message that has to wait, or that another process is running, as a new one, since SQS
 * counts each receive as an attempt. The caller then acknowledges the received one: if its process
 * ends before, both run under one claim.
 *
 * Messages of an ordered queue, which has no delays, wait in the outbox, jobs with an `order` in the
 * line of their group.
 *
 * A job with an `order` has no line only if its own code threw the 429. It keeps its place in the
 * queue, except before the receive with which SQS would dead-letter it.
 *
 * @param leastMs - least time to wait, in milliseconds.
 * @returns after how many milliseconds to return the received message instead, to keep its place or
 * because sending fails; otherwise `undefined`.
 */
export async function sendAgain(
  { clock, log, server }: Pick<Runtime, "clock" | "log" | "server">,
  { claims, outbox }: Pick<Adapters, "claims" | "outbox">,
  queue: Pick<MessageQueue, "name" | "isOrdered" | "sendLater" | "maxReceives">,
  { message, read, line, consumed = [], isRunning = false }: Received,
  leastMs: number,
): Promise<number | undefined> {
  const { id: messageId, body, group, receives, sentMs } = message;
  const before = read.waited ?? neverWaited;
  const { times, attempts, sinceMs = sentMs } = before;
  const afterMs = Math.max(leastMs, waitMs(times));
  const facts = { queue: queue.name, messageId };
  // Safe cast: only a job has this member.
  const job = "job" in read ? (read as { readonly job: JobMessage }).job : undefined;
  const declared = job && server.registry.jobs.get(job.name);
  const keepsPlace = declared?.order !== undefined && line === undefined;
  const failures = await failuresOf(queue, consumed);
  const finished = job === undefined ? finishedOf(before, consumed, failures) : {};
  // A receive in which it kept its place is not an attempt either. When a consumer has succeeded or
  // failed for the last time, the others have all attempts again: those so far may be its own.
  const hasEnded =
    (failures ?? []).length > 0 || consumed.some(({ outcome }) => outcome.kind === "processed");
  const tried = hasEnded ? 0 : attempts + (keepsPlace || isRunning ? 0 : receives - 1);
  const textAt = (place?: Place) => {
    const counts = { times: times + 1, attempts: tried, sinceMs, ...place };
    const text = waitingText(body, { ...counts, ...finished });
    const isTooLarge = Buffer.byteLength(text) > serviceSizes.sqsMessage.maxBytes;
    return isTooLarge ? waitingText(body, counts) : text;
  };
  const rowAt = (dueMs: number, place?: Place) => {
    // Safe cast: only an ordered queue's messages, which are jobs, wait in the outbox.
    const { jobId, name, tenantId } = job as JobMessage;
    return queuedRow(dueMs, 0, {
      ...{ jobId, name, tenantId, text: textAt(place), group: group ?? jobId },
      // With its own ID, the queue would drop it as a duplicate for five minutes.
      deduplicationId: crypto.randomUUID(),
    });
  };
  try {
    if (keepsPlace) {
      if (receives < ((await queue.maxReceives()) ?? Number.POSITIVE_INFINITY)) return afterMs;
      log.warn("queue.order_lost", { ...facts, receives, job: declared.name });
    }
    if (line !== undefined) await line.wait(afterMs, rowAt);
    else if (!queue.isOrdered || job === undefined) await queue.sendLater(textAt(), group, afterMs);
    else {
      const items = outbox.items(rowAt(clock.now() + afterMs));
      const token = crypto.randomUUID();
      const refusal = await claims.commit({ items, token, completed: undefined });
      if (refusal !== undefined) throw new Error(`the outbox refused it (${codesOf(refusal)})`);
    }
    return undefined;
  } catch (error) {
    log.warn("queue.send_again_failed", { ...facts, reason: String(error) });
    return afterMs;
  }
}

/** Names the consumers that do not run again, unless their claims already prevent it. */
function finishedOf(
  { failed = [], reason, done = [] }: Waited,
  consumed: readonly Consumed[],
  failures: Awaited<ReturnType<typeof failuresOf>>,
): Pick<Waited, "failed" | "reason" | "done"> {
  const kept = consumed.filter(
    ({ outcome: { kind }, hasReusableKey }) =>
      hasReusableKey && (kind === "processed" || kind === "skipped"),
  );
  const named = { done: [...done, ...kept.map(({ name }) => name)] };
  if (failures === undefined) return named;
  return {
    ...named,
    failed: [...failed, ...failures.map(({ name }) => name)],
    reason: reason ?? failures[0]?.reason,
  };
}

/**
 * Returns `undefined` without a dead-letter queue: a named consumer would never run again. If this
 * cannot be found out, names none in addition.
 */
async function failuresOf(queue: Pick<MessageQueue, "maxReceives">, consumed: readonly Consumed[]) {
  if (consumed.length === 0) return [];
  const most = await queue.maxReceives().catch(() => "unknown" as const);
  if (most === undefined) return undefined;
  if (most === "unknown") return [];
  return consumed.flatMap(({ name, outcome }) =>
    outcome.kind === "failed"
      ? [{ name, reason: String(errorLog(outcome.error).data["message"]) }]
      : [],
  );
}

function codesOf(reasons: readonly CancellationReason[]): string {
  return reasons.map(({ code }) => code).join(", ");
}
