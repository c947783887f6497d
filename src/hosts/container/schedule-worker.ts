import type { Schedule } from "../../app/run/schedules.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { pause } from "../../base/process/clock.ts";

/** Shortest and longest delay until a schedule is checked again, in milliseconds. */
const [leastMs, mostMs] = [20, 60_000];

/**
 * Fires schedules when they are due, until `stop` aborts.
 *
 * @returns a promise `ended`, which resolves once no schedule is running.
 */
export async function keepSchedules(
  runtime: Runtime,
  stop: AbortSignal,
): Promise<{ readonly ended: Promise<void> }> {
  // Only servers with schedules load croner.
  const { createSchedules } = await import("../../app/run/schedules.ts");
  const schedules = await createSchedules(runtime, await runtime.adapters());
  return {
    ended: Promise.all(schedules.map((schedule) => keep(schedule, runtime, stop))).then(
      () => undefined,
    ),
  };
}

/**
 * Checks a schedule when it is due and at least once a minute: another process may have left a fire
 * unfinished.
 */
async function keep(schedule: Schedule, { clock }: Runtime, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    const { nextMs } = await schedule.look();
    const latestMs = mostMs * (0.75 + Math.random() / 4); // staggers processes
    await pause(Math.min(Math.max(nextMs - clock.now(), leastMs), latestMs), stop);
  }
}
