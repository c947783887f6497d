import { setTimeout as sleep } from "node:timers/promises";

/** Waits for a number of milliseconds, or until `end` aborts. Does not keep the process running. */
export async function pause(ms: number, end: AbortSignal): Promise<void> {
  // The abort is the only possible failure.
  await sleep(ms, undefined, { ref: false, signal: end }).catch(() => undefined);
}
