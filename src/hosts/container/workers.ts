import { usesMessages } from "../../app/registry/registry.ts";
import { consumeOnce } from "../../app/run/task.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { keepSchedules } from "../../app/schedules/keep-schedules.ts";
import { isReloaded } from "../../base/process/environment.ts";
import { pause } from "../../base/process/pause.ts";
import { type QueueWorker, startQueueWorker } from "./queue-worker.ts";

export interface Workers {
  stop(): void;
  /** Resolves once no work is in flight and committed events are dispatched. */
  finished(): Promise<void>;
}

/**
 * Average time between sweeps of the outbox, in milliseconds. Events leave it right after their
 * commit, so most sweeps find it empty.
 */
const sweepMs = 10_000;
/** Minimum age of a row for a sweep and for a process's last sweep, in milliseconds. */
const [graceMs, lastGraceMs] = [10_000, 1_000];

/** Starts the queue workers, the outbox sweep and the schedules that the server needs. */
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
      await pause(eachMs * (0.75 + Math.random() / 2), stopping.signal); // staggers processes
      if (stopping.signal.aborted) return;
      await sweep(graceMs, stopping.signal);
    }
  };
  const hasOutbox = usesMessages(registry);
  const sweeping = hasOutbox ? sweepUntilStopped() : Promise.resolve();
  const schedules =
    registry.schedules.size > 0 ? await startSchedules(runtime, stopping.signal) : undefined;
  return {
    stop: () => {
      stopping.abort();
      for (const queue of queues) queue.stop();
    },
    finished: async () => {
      await Promise.all([sweeping, schedules?.ended, ...queues.map((queue) => queue.finished())]);
      // A reloaded process skips its last sweep: a developer waits for the restart, and the next
      // process sweeps the remaining rows.
      if (hasOutbox && !isReloaded(runtime)) await sweep(lastGraceMs, undefined);
    },
  };
}

/** Starts the schedules. `ended` resolves once none of them is running. */
async function startSchedules(
  runtime: Runtime,
  stop: AbortSignal,
): Promise<{ readonly ended: Promise<void> }> {
  // Only servers with schedules load croner.
  const { createSchedules } = await import("../../app/schedules/schedules.ts");
  const schedules = await createSchedules(runtime, await runtime.adapters(), consumeOnce);
  return { ended: keepSchedules(schedules, runtime.clock, stop) };
}

async function startQueues(runtime: Runtime): Promise<readonly QueueWorker[]> {
  const adapters = await runtime.adapters();
  const messaging = await adapters.messaging.open();
  const queues = [await startQueueWorker(runtime, adapters, messaging, messaging.jobs)];
  if (runtime.server.registry.consumers.size > 0)
    queues.push(await startQueueWorker(runtime, adapters, messaging, messaging.events));
  return queues;
}
