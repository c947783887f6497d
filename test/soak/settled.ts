import { setTimeout as sleep } from "node:timers/promises";
import { moveBackDeadLetters } from "./dead-letters.ts";
import type { Findings } from "./findings.ts";
import type { Stored } from "./stored.ts";

/** Messages and rows count as stuck if they do not change for this time. SQS hides the messages of a killed process for 30 s. */
const patienceMs = 180_000;

/**
 * Waits until queues and outbox are empty.
 *
 * @returns how many dead letters were moved back.
 */
export async function settled(
  stored: Stored,
  queues: readonly string[],
  findings: Findings,
): Promise<number> {
  let [moved, last, changedMs] = [0, "", performance.now()];
  for (;;) {
    moved += await moveBackDeadLetters(stored, queues);
    const [messages, rows] = [await stored.messages(), await stored.rows("outbox")];
    if (Object.keys(messages).length === 0 && rows.length === 0) return moved;
    const left = JSON.stringify({ messages, rows });
    if (left !== last) [last, changedMs] = [left, performance.now()];
    if (performance.now() - changedMs > patienceMs) {
      findings.add("queues and the outbox are empty at the end", left);
      return moved;
    }
    await sleep(250);
  }
}
