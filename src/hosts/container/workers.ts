import { setTimeout as sleep } from "node:timers/promises";
import { usesMessages, usesQueues } from "../../app/registry/registry.ts";
import { processMessage } from "../../app/run/process-message.ts";
import { consumeOnce } from "../../app/run/task.ts";
import type { Adapters, Messaging } from "../../app/runtime/adapters.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import {
  queueMessage,
  systemAttributes,
  visibilitySeconds,
} from "../../aws/messaging/sqs-queue.ts";
import { pause } from "../../base/process/clock.ts";
import { isReloaded } from "../../base/process/environment.ts";
import type { MessageQueue, QueueMessage } from "../../parts/messages/message-queue.ts";
import type { SweepOptions } from "../../parts/messages/outbox.ts";
import type { ContainerWork } from "../container-http/http-options.ts";
import { messageGroups } from "./message-groups.ts";

export interface Workers {
  stop(): void;
  /** Resolves once no work is in flight and committed events are dispatched. */
  finished(): Promise<void>;
}

/** Average time between sweeps of the outbox, in milliseconds. Most sweeps do not find an undispatched event. */
export const sweepMs = 10_000;
/** Minimum age of an outbox row for a sweep, and for a process's last sweep, in milliseconds. */
const [graceMs, lastGraceMs] = [10_000, 1_000];

/** Worker of a queue. It does not take messages until `start`. */
interface QueueWorker extends Workers {
  start(): void;
}

/**
 * Starts all workers, or none if one cannot start. If the process stops in the meantime, they are
 * already stopped.
 */
export async function startWorkers(
  runtime: Runtime,
  works: ReadonlySet<ContainerWork>,
  eachMs: number = sweepMs,
): Promise<Workers> {
  const { registry } = runtime.server;
  const hasMessages = works.has("workers") && usesMessages(registry);
  const hasQueues = works.has("workers") && usesQueues(registry);
  const queues = hasQueues ? await openQueues(runtime) : [];
  const stopping = new AbortController();
  const sweep = async (options: SweepOptions) => {
    try {
      const { outbox } = runtime.runs.value ?? (await runtime.runs.open());
      await outbox.sweep(options);
    } catch (error) {
      runtime.log.warn("outbox.sweep_failed", { reason: String(error) });
    }
  };
  const sweepUntilStopped = async () => {
    for (;;) {
      await pause(eachMs * (0.75 + Math.random() / 2), stopping.signal); // staggers processes
      if (stopping.signal.aborted) return;
      await sweep({ graceMs, signal: stopping.signal });
    }
  };
  // A reloaded process leaves the last sweep to the next one, because a developer waits.
  const sweepsAtEnd = hasMessages && !isReloaded(runtime);
  const hasSchedules = works.has("schedules") && registry.schedules.size > 0;
  const keepSchedules = hasSchedules ? await openSchedules(runtime) : undefined;
  if (runtime.lifecycle.draining.aborted) stopping.abort();
  else for (const queue of queues) queue.start();
  const schedules = keepSchedules?.(stopping.signal);
  const sweeping = hasMessages ? sweepUntilStopped() : undefined;
  return {
    stop: () => {
      stopping.abort();
      for (const queue of queues) queue.stop();
    },
    finished: async () => {
      await Promise.all([sweeping, schedules, ...queues.map((queue) => queue.finished())]);
      if (sweepsAtEnd) await sweep({ graceMs: lastGraceMs });
    },
  };
}

async function openSchedules(runtime: Runtime): Promise<(stop: AbortSignal) => Promise<void>> {
  // Only servers with schedules load croner.
  const { createSchedules, keepSchedules } = await import("../../app/schedules/schedules.ts");
  const schedules = await createSchedules(runtime, await runtime.adapters.open(), consumeOnce);
  return (stop) => keepSchedules(schedules, runtime.clock, stop);
}

async function openQueues(runtime: Runtime): Promise<QueueWorker[]> {
  const adapters = await runtime.adapters.open();
  const messaging = await adapters.messaging.open();
  const { registry } = runtime.server;
  const read = usesMessages(registry) ? [...messaging.received] : [];
  if (registry.consumers.size > 0) read.push(messaging.events);
  if (registry.receivers.size > 0) read.push(messaging.others);
  const queues: QueueWorker[] = [];
  for (const queue of read) queues.push(await openQueueWorker(runtime, adapters, messaging, queue));
  return queues;
}

/** Number of groups in progress, or messages of a standard queue, at which a worker stops polling. */
const maxRunning = 10;
/** Time between renewals of a visibility timeout, in milliseconds: two in a row may fail. */
const renewMs = (visibilitySeconds * 1_000) / 3;
/** Extra invisibility of messages after a retried one in their group, in milliseconds. */
const behindFirstMs = 1_000;
/**
 * Wait time of a long poll in production and in development, in seconds. A stopping process waits
 * for its last poll, within its linger. The embedded stack ends the poll early.
 */
export const [pollSeconds, developmentPollSeconds] = [3, 1];
const lookMs = 5;
const [shortestPauseMs, longestPauseMs] = [500, 30_000];

/**
 * Polls a queue and processes its messages concurrently; messages of one group on an ordered queue
 * run in sequence. Renews the visibility timeout of messages in progress.
 */
async function openQueueWorker(
  runtime: Runtime,
  adapters: Adapters,
  { sqs }: Pick<Messaging, "sqs">,
  queue: MessageQueue,
): Promise<QueueWorker> {
  const { Consumer } = await import("sqs-consumer");
  (await runtime.messages.open()).meet(queue);
  const running = new RunningWork();
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
    // Each message is deleted once it is done, without waiting for the slowest of its batch.
    shouldDeleteMessages: false,
    suppressFifoWarning: true, // the code below keeps the order of a group
    preReceiveMessageCallback: async () => {
      if (pauseMs > 0) await pause(pauseMs, stopping.signal);
      await running.fewerThan(maxRunning);
      // The consumer would receive once more, and hand the messages back.
      stopping.signal.throwIfAborted();
    },
    postReceiveMessageCallback: async () => {
      pauseMs = 0;
    },
    handleMessageBatch: async (messages) => {
      if (stopping.signal.aborted) {
        // Makes the messages visible to other processes immediately.
        for (const { receipt } of messages.map(queueMessage))
          await queue.changeVisibility(receipt, 0);
        return [];
      }
      for (const group of messageGroups(queue, messages.map(queueMessage)))
        running.add(workOn(runtime, adapters, queue, group));
      return [];
    },
  });
  consumer.on("error", (error) => {
    if (stopping.signal.aborted) return; // it does not ask again
    pauseMs = Math.min(longestPauseMs, Math.max(shortestPauseMs, pauseMs * 2));
    runtime.log.warn("queue.receive_failed", { queue: queue.name, reason: error.message });
  });
  return {
    start: () => consumer.start(),
    stop: () => {
      stopping.abort();
      // Messages of an aborted poll would stay invisible until their visibility timeout ends.
      consumer.stop();
      void adapters.endPolls?.(url);
    },
    finished: async () => {
      while (consumer.status.isPolling) {
        await sleep(lookMs);
        await adapters.endPolls?.(url); // repeated: the last poll may have started after `stop`
      }
      await running.fewerThan(1);
    },
  };
}

/**
 * Counts the work in progress. `Promise.race` would add a reaction to each promise that is still
 * pending, and a job that runs for hours would keep all of them.
 */
export class RunningWork {
  #count = 0;
  #end = Promise.withResolvers<void>();

  /** @param work - never rejects. */
  add(work: Promise<void>): void {
    this.#count += 1;
    void work.then(() => {
      this.#count -= 1;
      this.#end.resolve();
      this.#end = Promise.withResolvers();
    });
  }

  async fewerThan(count: number): Promise<void> {
    while (this.#count >= count) await this.#end.promise;
  }
}

/** Processes a group in sequence. Never throws: it logs failures, and SQS redelivers. */
async function workOn(
  runtime: Runtime,
  adapters: Adapters,
  queue: MessageQueue,
  group: readonly QueueMessage[],
): Promise<void> {
  const waiting = new Set(group);
  const renewing = setInterval(() => {
    // The next renewal makes up for a failed one.
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
