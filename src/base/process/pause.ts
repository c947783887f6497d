import { setTimeout as sleep } from "node:timers/promises";

/** Waits so many milliseconds, or until `end` aborts; it does not keep the process running. */
export async function pause(ms: number, end: AbortSignal): Promise<void> {
  // It fails with the abort, and only with it.
  await sleep(ms, undefined, { ref: false, signal: end }).catch(() => undefined);
}
