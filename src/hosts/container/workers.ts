import { usesMessages } from "../../app/registry/registry.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { isReloaded } from "../../base/process/environment.ts";
import { pause } from "../../base/process/pause.ts";
import { type QueueWorker, startQueueWorker } from "./queue-worker.ts";
import { keepSchedules } from "./schedule-worker.ts";

/** What a container does beside answering requests. */
export interface Workers {
  /** Nothing new is begun. */
  stop(): void;
  /** Resolves once nothing is under way, and what was committed is dispatched. */
  finished(): Promise<void>;
}

/** How often the outbox is swept, in milliseconds; events leave it right after their commit, so that mostly nothing is there. */
const sweepMs = 10_000;
/** How old a row has to be for a sweep, in milliseconds; for the last one of a process. */
const [graceMs, lastGraceMs] = [10_000, 1_000];

/** Starts the queue's workers, the sweep of the outbox and the schedules, where the server has any use for them. */
export async function startWorkers(runtime: Runtime, eachMs: number = sweepMs): Promise<Workers> {
  const { registry } = runtime.server;
  const queues = usesMessages(registry) ? await startQueues(runtime) : [];
  const stopping = new AbortController();
  const sweep = async (ageMs: number, signal: AbortSignal | undefined) => {
    try {
      await (await runtime.runs()).outbox.sweep({
        graceMs: ageMs,
        ...(signal === undefined ? {} : { signal }),
      });
    } catch (error) {
      runtime.log.warn("outbox.sweep_failed", { reason: String(error) });
    }
  };
  const sweepUntilStopped = async () => {
    for (;;) {
      await pause(eachMs * (0.75 + Math.random() / 2), stopping.signal); // not all processes at once
      if (stopping.signal.aborted) return;
      await sweep(graceMs, stopping.signal);
    }
  };
  const hasOutbox = usesMessages(registry);
  const sweeping = hasOutbox ? sweepUntilStopped() : Promise.resolve();
  const schedules =
    registry.schedules.size > 0 ? await keepSchedules(runtime, stopping.signal) : undefined;
  return {
    stop: () => {
      stopping.abort();
      for (const queue of queues) queue.stop();
    },
    finished: async () => {
      await Promise.all([sweeping, schedules?.ended, ...queues.map((queue) => queue.finished())]);
      // The next process sweeps what is left, and somebody waits for it.
      if (hasOutbox && !isReloaded(runtime)) await sweep(lastGraceMs, undefined);
    },
  };
}

async function startQueues(runtime: Runtime): Promise<readonly QueueWorker[]> {
  const adapters = await runtime.adapters();
  const messaging = await adapters.messaging.open();
  const queues = [await startQueueWorker(runtime, adapters, messaging, messaging.jobs)];
  if (runtime.server.registry.consumers.size > 0)
    queues.push(await startQueueWorker(runtime, adapters, messaging, messaging.events));
  return queues;
}
