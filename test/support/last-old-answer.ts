import { setTimeout as sleep } from "node:timers/promises";

/** Time between two requests, and when to give up, in milliseconds. */
const [everyMs, mostMs] = [100, 30_000];

/**
 * Asks until the answer is the new one. Resolves to when the last request was sent that got another answer: in milliseconds
 * after `changedMs` of `performance.now()`, and 0 without such a request. A slow machine delays answers and the end, but no request
 * that is sent once a process has to know of a change gets the old answer.
 */
export async function lastOldAnswerMs<T>(
  changedMs: number,
  ask: () => Promise<T>,
  answer: T,
): Promise<number> {
  let lastMs = 0;
  while (lastMs < mostMs) {
    const sentMs = performance.now() - changedMs;
    if ((await ask()) === answer) break;
    lastMs = sentMs;
    await sleep(everyMs);
  }
  return lastMs;
}
