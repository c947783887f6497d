import { queuedRow } from "../../parts/messages/due-jobs.ts";
import type { ReadMessage } from "../../parts/messages/message-guard.ts";
import type { MessageQueue, QueueMessage } from "../../parts/messages/message-queue.ts";
import { neverWaited, waitingText, waitMs } from "../../parts/messages/waited.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { Runtime } from "../runtime/runtime.ts";

/**
 * Sends a message that has to wait as a new one, since SQS counts each receive as an attempt. The
 * caller then acknowledges the received one: if its process ends before, both run under one claim.
 * Messages of an ordered queue, which has no delays, wait in the outbox.
 *
 * @returns after how many milliseconds to return the received message instead, if sending fails;
 * otherwise `undefined`.
 */
export async function sendAgain(
  { clock, log }: Pick<Runtime, "clock" | "log">,
  { claims, outbox }: Pick<Adapters, "claims" | "outbox">,
  queue: Pick<MessageQueue, "name" | "isOrdered" | "sendLater">,
  { id: messageId, body, group, receives, sentMs }: QueueMessage,
  read: ReadMessage,
): Promise<number | undefined> {
  const { times, attempts, sinceMs = sentMs } = read.waited ?? neverWaited;
  const afterMs = waitMs(times);
  const text = waitingText(body, {
    times: times + 1,
    attempts: attempts + receives - 1,
    sinceMs,
  });
  try {
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
    const facts = { queue: queue.name, messageId, reason: String(error) };
    log.warn("queue.send_again_failed", facts);
    return afterMs;
  }
}
