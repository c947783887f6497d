import { setTimeout as sleep } from "node:timers/promises";
import { processMessage } from "../../app/run/process-message.ts";
import type { Adapters, Messaging } from "../../app/runtime/adapters.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import {
  queueMessage,
  systemAttributes,
  visibilitySeconds,
} from "../../aws/messaging/sqs-queue.ts";
import { pause } from "../../base/process/pause.ts";
import {
  isOrdered,
  type MessageQueue,
  type QueueMessage,
} from "../../parts/messages/message-queue.ts";

/** Works on a queue until it is stopped. */
export interface QueueWorker {
  /** Takes no more messages. */
  stop(): void;
  /** Resolves once nothing is under way. */
  finished(): Promise<void>;
}

/** How many messages a process works on at once: the next are received when there are fewer. */
const maxRunning = 10;
/** How often the visibility timeout of a message in progress is renewed: two renewals may fail. */
const renewMs = (visibilitySeconds * 1_000) / 3;
/** How much longer than a retried message those behind it in its group stay invisible. */
const behindFirstMs = 1_000;
/**
 * How long a poll waits for a message, in seconds: a process that stops waits for its last one, which the linger covers. On the
 * embedded stack it is ended.
 */
const [pollSeconds, developmentPollSeconds] = [3, 1];
/** How often it is looked whether the last poll is over, in milliseconds. */
const lookMs = 5;
/** The pauses after a call that failed, in milliseconds. */
const [shortestPauseMs, longestPauseMs] = [500, 30_000];

/**
 * Polls a queue and processes its messages: ten at a time, those of one group one after the other. The visibility timeout of
 * those that take long is renewed.
 */
export async function startQueueWorker(
  runtime: Runtime,
  adapters: Adapters,
  { sqs }: Pick<Messaging, "sqs">,
  queue: MessageQueue,
): Promise<QueueWorker> {
  const { Consumer } = await import("sqs-consumer");
  (await runtime.messages.open()).meet(queue);
  const running = new Set<Promise<void>>();
  const stopping = new AbortController();
  let pauseMs = 0;
  const url = await queue.url();

  const consumer = Consumer.create({
    queueUrl: url,
    sqs,
    batchSize: 10,
    waitTimeSeconds: runtime.environment === "production" ? pollSeconds : developmentPollSeconds,
    visibilityTimeout: visibilitySeconds,
    messageSystemAttributeNames: [...systemAttributes],
    // Each is acknowledged as soon as it is done: it does not wait for the slowest of its batch.
    shouldDeleteMessages: false,
    suppressFifoWarning: true, // the order of a group is kept below
    preReceiveMessageCallback: async () => {
      if (pauseMs > 0) await pause(pauseMs, stopping.signal);
      while (running.size >= maxRunning) await Promise.race(running);
    },
    postReceiveMessageCallback: async () => {
      pauseMs = 0;
    },
    handleMessageBatch: async (messages) => {
      if (stopping.signal.aborted) {
        // Others can have them at once.
        for (const { receipt } of messages.map(queueMessage))
          await queue.changeVisibility(receipt, 0);
        return [];
      }
      for (const group of groups(queue, messages.map(queueMessage))) {
        const work = workOn(runtime, adapters, queue, group).finally(() => running.delete(work));
        running.add(work);
      }
      return [];
    },
  });
  consumer.on("error", (error) => {
    pauseMs = Math.min(longestPauseMs, Math.max(shortestPauseMs, pauseMs * 2));
    runtime.log.warn("queue.receive_failed", { queue: queue.name, reason: error.message });
  });
  consumer.start();
  return {
    stop: () => {
      stopping.abort();
      // Not aborted: messages of an aborted poll would stay invisible until their visibility timeout ends.
      consumer.stop();
      void adapters.endPolls?.(url);
    },
    finished: async () => {
      while (consumer.status.isPolling) {
        await sleep(lookMs);
        await adapters.endPolls?.(url); // once more: the last poll may just have been on its way
      }
      while (running.size > 0) await Promise.race(running);
    },
  };
}

/** Messages that have to be worked on one after the other: those of a standard queue, where groups are for fairness, have not. */
function groups({ name }: MessageQueue, messages: readonly QueueMessage[]): QueueMessage[][] {
  if (!isOrdered(name)) return messages.map((message) => [message]);
  return [...Map.groupBy(messages, ({ group }) => group).values()];
}

/** Never throws: what goes wrong with a message is logged, and the message comes again. */
async function workOn(
  runtime: Runtime,
  adapters: Adapters,
  queue: MessageQueue,
  group: readonly QueueMessage[],
): Promise<void> {
  const waiting = new Set(group);
  const renewing = setInterval(() => {
    // The next renewal makes up for one that failed.
    for (const { receipt } of waiting)
      queue.changeVisibility(receipt, visibilitySeconds * 1_000).catch(() => undefined);
  }, renewMs);
  let behindMs: number | undefined;
  try {
    for (const message of group) {
      if (behindMs !== undefined) {
        // It must not overtake the retried message of its group.
        waiting.delete(message);
        await queue.changeVisibility(message.receipt, behindMs);
        continue;
      }
      const outcome = await processMessage(runtime, adapters, queue, message);
      waiting.delete(message);
      if (outcome.kind === "done") await queue.remove(message.receipt);
      if (outcome.kind === "later") behindMs = outcome.afterMs + behindFirstMs;
    }
  } catch (error) {
    runtime.log.warn("queue.acknowledge_failed", { queue: queue.name, reason: String(error) });
  } finally {
    clearInterval(renewing);
  }
}
