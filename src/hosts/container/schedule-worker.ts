import type { Schedule } from "../../app/run/schedules.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { pause } from "../../base/process/pause.ts";

/** The shortest and the longest time until a schedule is looked at again, in milliseconds. */
const [leastMs, mostMs] = [20, 60_000];

/**
 * Lets schedules fire when they are due, until `stop` aborts.
 *
 * @returns what they are done with once nothing of them runs any more.
 */
export async function keepSchedules(
  runtime: Runtime,
  stop: AbortSignal,
): Promise<{ readonly ended: Promise<void> }> {
  // croner is read by who has schedules.
  const { createSchedules } = await import("../../app/run/schedules.ts");
  const schedules = await createSchedules(runtime, await runtime.adapters());
  return {
    ended: Promise.all(schedules.map((schedule) => keep(schedule, runtime, stop))).then(
      () => undefined,
    ),
  };
}

/** Looks at the latest each minute: another process may have left a fire undone. */
async function keep(schedule: Schedule, { clock }: Runtime, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    const { nextMs } = await schedule.look();
    const latestMs = mostMs * (0.75 + Math.random() / 4); // not all processes at once
    await pause(Math.min(Math.max(nextMs - clock.now(), leastMs), latestMs), stop);
  }
}
