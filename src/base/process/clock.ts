import { setTimeout as sleep } from "node:timers/promises";

/** Source of the time, which tests replace. */
export interface Clock {
  /** Returns the current time in milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = Object.freeze({ now: () => Date.now() });

/** Waits, at most until `end` aborts. Does not keep the process running. */
export async function pause(ms: number, end: AbortSignal): Promise<void> {
  // Only an abort can fail the wait, and it ends the wait as well.
  await Promise.allSettled([sleep(ms, undefined, { ref: false, signal: end })]);
}
