import { setTimeout as sleep } from "node:timers/promises";

/** Source of the time. Tests replace it to control the time. */
export interface Clock {
  /** Returns the current time in milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = Object.freeze({ now: () => Date.now() });

/** Waits for a number of milliseconds, or until `end` aborts. Does not keep the process running. */
export async function pause(ms: number, end: AbortSignal): Promise<void> {
  // The abort, the only possible failure, ends the wait as well.
  await Promise.allSettled([sleep(ms, undefined, { ref: false, signal: end })]);
}
