import { setTimeout as sleep } from "node:timers/promises";
import type { SharedEvent } from "../../../parts/messages/envelope.ts";
import type { JobMessage } from "../../../parts/messages/job-message.ts";
import { deliverAgain, settleWith } from "../app/settle.ts";
import type { TestProcess } from "../app/test-process.ts";

/** Time between two attempts, in milliseconds of the race's clock. */
const retryMs = 10_000;
const mostAttempts = 20;

/**
 * Settles like a test app, with the messages that the order has recorded in place of queues. Two
 * requests that settle share the messages, as two workers share a queue.
 *
 * @throws the error of a message that fails 20 times, or Error if a schedule or outbox row is left.
 */
export async function settleOrder(
  process: Pick<TestProcess, "runtime" | "adapters">,
  unread: (SharedEvent | JobMessage)[],
  sinceMs: number,
): Promise<void> {
  let failure: unknown = new Error("app.settled: messages are left in the outbox");
  let attempts = 0;
  await settleWith(process, {
    sinceMs,
    looked: (name, { kind, reason }) => {
      if (kind !== "idle" && kind !== "fired") failure = new Error(`${name}: ${reason}`);
    },
    work: async () => {
      let progress = 0;
      // One at a time, because another request that settles may take the rest.
      for (let more = unread.length; more > 0; more -= 1) {
        const message = unread.shift();
        if (message === undefined) break;
        const outcome = await deliverAgain(process, message).catch((error: unknown) => {
          failure = error;
          return "failed";
        });
        if (outcome !== "failed" && outcome !== "handed-back") progress += 1;
        else unread.push(message);
      }
      return progress;
    },
    waiting: async () => unread.length,
    rest: async () => {
      attempts += 1;
      if (attempts === mostAttempts) throw failure;
      await sleep(retryMs);
    },
  });
}
