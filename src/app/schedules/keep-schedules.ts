import type { Clock } from "../../base/process/clock.ts";
import { pause } from "../../base/process/clock.ts";
import type { Schedule } from "./schedules.ts";

/** Delay until the next check, in milliseconds. */
const [leastMs, mostMs] = [20, 60_000];

/** Fires schedules when they are due. Resolves once `stop` has aborted and none is running. */
export async function keepSchedules(
  schedules: readonly Schedule[],
  clock: Clock,
  stop: AbortSignal,
): Promise<void> {
  await Promise.all(schedules.map((schedule) => keep(schedule, clock, stop)));
}

/** Checks at least once a minute: another process may have left a fire unfinished. */
async function keep(schedule: Schedule, clock: Clock, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    const { nextMs } = await schedule.look();
    const latestMs = mostMs * (0.75 + Math.random() / 4); // staggers processes
    await pause(Math.min(Math.max(nextMs - clock.now(), leastMs), latestMs), stop);
  }
}
