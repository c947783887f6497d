import type { MessageQueue, QueueMessage } from "../app/message-queue.ts";
import { processMessage } from "../app/process-message.ts";
import type { Adapters, Messaging, Runtime } from "../app/runtime.ts";
import { queueMessage, visibilitySeconds } from "../aws/sqs-queue.ts";

/** Works on a queue until it is stopped. */
export interface QueueWorker {
  /** Takes no more messages. */
  stop(): void;
  /** Resolves once nothing is under way. */
  finished(): Promise<void>;
}

/** How many messages a process works on at once: the next are received when there are fewer. */
const maxRunning = 10;
/** How often a message that is worked on is kept hidden: twice may fail. */
const renewMs = (visibilitySeconds * 1_000) / 3;
/** The pauses after a call that failed, in milliseconds. */
const [shortestPauseMs, longestPauseMs] = [500, 30_000];

/**
 * Polls a queue and does what its messages ask for: ten at a time, those of one group one after the other. What takes long
 * is kept hidden from others meanwhile.
 */
export async function startQueueWorker(
  runtime: Runtime,
  adapters: Adapters,
  { sqs }: Pick<Messaging, "sqs">,
  queue: MessageQueue,
): Promise<QueueWorker> {
  const { Consumer } = await import("sqs-consumer");
  const running = new Set<Promise<void>>();
  const stopping = new AbortController();
  let pauseMs = 0;

  const consumer = Consumer.create({
    queueUrl: await queue.url(),
    sqs,
    batchSize: 10,
    waitTimeSeconds: 20,
    visibilityTimeout: visibilitySeconds,
    messageSystemAttributeNames: ["ApproximateReceiveCount", "MessageGroupId"],
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
      for (const group of groups(messages.map(queueMessage))) {
        const work = workOn(runtime, adapters, queue, group).finally(() => running.delete(work));
        running.add(work);
      }
      return [];
    },
  });
  consumer.on("error", (error) => {
    if (stopping.signal.aborted) return; // the poll that was ended
    pauseMs = Math.min(longestPauseMs, Math.max(shortestPauseMs, pauseMs * 2));
    runtime.log.warn("queue.receive_failed", { queue: queue.name, reason: error.message });
  });
  consumer.start();
  return {
    stop: () => {
      stopping.abort();
      consumer.stop({ abort: true });
    },
    finished: async () => {
      while (running.size > 0) await Promise.race(running);
    },
  };
}

/** Messages that have to be worked on one after the other. */
function groups(messages: readonly QueueMessage[]): QueueMessage[][] {
  const byGroup = new Map<string, QueueMessage[]>();
  for (const message of messages) {
    const group = message.group === undefined ? `message ${message.id}` : `group ${message.group}`;
    const others = byGroup.get(group);
    if (others === undefined) byGroup.set(group, [message]);
    else others.push(message);
  }
  return [...byGroup.values()];
}

/** Never throws: what goes wrong with a message is logged, and the message comes again. */
async function workOn(runtime: Runtime, adapters: Adapters, queue: MessageQueue, group: readonly QueueMessage[]): Promise<void> {
  let isHeldUp = false;
  const renewing = setInterval(() => {
    // What fails is tried again at the next turn.
    for (const { receipt } of waiting) queue.hide(receipt, visibilitySeconds * 1_000).catch(() => undefined);
  }, renewMs);
  const waiting = new Set(group);
  try {
    for (const message of group) {
      // One that comes later must not overtake one of its group that failed.
      const outcome = isHeldUp ? "later" : await processMessage(runtime, adapters, queue, message);
      waiting.delete(message);
      if (outcome === "later") {
        if (isHeldUp) await queue.hide(message.receipt, 0);
        isHeldUp = true;
      }
      if (outcome === "done") await queue.remove(message.receipt);
    }
  } catch (error) {
    runtime.log.warn("queue.acknowledge_failed", { queue: queue.name, reason: String(error) });
  } finally {
    clearInterval(renewing);
  }
}

function pause(ms: number, end: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const stop = () => {
      clearTimeout(timer);
      resolve();
    };
    if (end.aborted) stop();
    end.addEventListener("abort", stop, { once: true });
  });
}
