import { queuedRow } from "../../parts/messages/due-jobs.ts";
import type { ReadMessage } from "../../parts/messages/message-guard.ts";
import type { MessageQueue, QueueMessage } from "../../parts/messages/message-queue.ts";
import { neverWaited, waitingText, waitMs } from "../../parts/messages/waited.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { Runtime } from "../runtime/runtime.ts";

interface Received {
  readonly message: QueueMessage;
  readonly read: ReadMessage;
}

/**
 * Sends a message that has to wait as a new one, since SQS counts each receive as an attempt. The
 * caller then acknowledges the received one: if its process ends before, both run under one claim.
 * Messages of an ordered queue, which has no delays, wait in the outbox.
 *
 * Only a rate limit lets a job with an `order` wait. It keeps its place in the queue, except before
 * the receive with which SQS would dead-letter it.
 *
 * @param leastMs - least time to wait, in milliseconds.
 * @returns after how many milliseconds to return the received message instead, to keep its place or
 * because sending fails; otherwise `undefined`.
 */
export async function sendAgain(
  { clock, log, server }: Pick<Runtime, "clock" | "log" | "server">,
  { claims, outbox }: Pick<Adapters, "claims" | "outbox">,
  queue: Pick<MessageQueue, "name" | "isOrdered" | "sendLater" | "maxReceives">,
  { message, read }: Received,
  leastMs: number,
): Promise<number | undefined> {
  const { id: messageId, body, group, receives, sentMs } = message;
  const { times, attempts, sinceMs = sentMs } = read.waited ?? neverWaited;
  const afterMs = Math.max(leastMs, waitMs(times));
  const facts = { queue: queue.name, messageId };
  const hasOrder = "job" in read && server.registry.jobs.get(read.job.name)?.order !== undefined;
  // A receive in which it kept its place is not an attempt.
  const tried = attempts + (hasOrder ? 0 : receives - 1);
  const text = waitingText(body, { times: times + 1, attempts: tried, sinceMs });
  try {
    if (hasOrder) {
      if (receives < ((await queue.maxReceives()) ?? Number.POSITIVE_INFINITY)) return afterMs;
      log.warn("queue.order_lost", { ...facts, receives, job: read.job.name });
    }
    if (!queue.isOrdered || !("job" in read)) await queue.sendLater(text, group, afterMs);
    else {
      const { jobId, name, tenantId } = read.job;
      const id = crypto.randomUUID();
      const row = queuedRow(clock.now() + afterMs, 0, {
        ...{ jobId, name, tenantId, text },
        group: group ?? jobId,
        // With its own ID, the queue would drop it as a duplicate for five minutes.
        deduplicationId: id,
      });
      await claims.commit({ items: outbox.items(row), token: id, completed: undefined });
    }
    return undefined;
  } catch (error) {
    log.warn("queue.send_again_failed", { ...facts, reason: String(error) });
    return afterMs;
  }
}
