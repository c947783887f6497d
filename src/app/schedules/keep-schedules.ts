import { type Clock, pause } from "../../base/process/clock.ts";
import type { Schedule } from "./schedules.ts";

/** Minimum and maximum delay until the next check, in milliseconds. */
const [leastMs, mostMs] = [20, 60_000];

/** Runs schedules when they are due. Resolves once `stop` has aborted and no run is left. */
export async function keepSchedules(
  schedules: readonly Schedule[],
  clock: Clock,
  stop: AbortSignal,
): Promise<void> {
  await Promise.all(schedules.map((schedule) => keep(schedule, clock, stop)));
}

/** Checks at least once a minute, because another process may have left a run unfinished. */
async function keep(schedule: Schedule, clock: Clock, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    const { nextMs } = await schedule.look();
    const latestMs = mostMs * (0.75 + Math.random() / 4); // staggers processes
    await pause(Math.min(Math.max(nextMs - clock.now(), leastMs), latestMs), stop);
  }
}
