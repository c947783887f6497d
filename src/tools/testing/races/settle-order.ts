import { setTimeout as sleep } from "node:timers/promises";
import { usesMessages } from "../../../app/registry/registry.ts";
import { consumeOnce } from "../../../app/run/task.ts";
import type { SharedEvent } from "../../../parts/messages/envelope.ts";
import type { JobMessage } from "../../../parts/messages/job-message.ts";
import { deliverAgain } from "../app/settle.ts";
import type { TestProcess } from "../app/test-process.ts";

/** Time between two attempts, in milliseconds of the race's clock. */
const retryMs = 10_000;
const mostAttempts = 20;

/**
 * Fires due schedules, consumes the messages and sweeps the outbox until nothing is left, like
 * workers. Two requests that settle share the messages, as two workers share a queue.
 *
 * @throws the error of a message that fails 20 times, or Error if a schedule or outbox row is left.
 */
export async function settleOrder(
  process: Pick<TestProcess, "runtime" | "adapters">,
  unread: (SharedEvent | JobMessage)[],
  sinceMs: number,
): Promise<void> {
  const { runtime, adapters } = process;
  const { registry } = runtime.server;
  const outbox = usesMessages(registry) ? (await runtime.runs.open()).outbox : undefined;
  // Loaded lazily, because only servers with schedules need the module.
  const { createSchedules } =
    registry.schedules.size === 0 ? {} : await import("../../../app/schedules/schedules.ts");
  const schedules = (await createSchedules?.(runtime, adapters, consumeOnce)) ?? [];
  let failure: unknown = new Error("app.settled: messages are left in the outbox");
  for (let attempt = 0; attempt < mostAttempts; ) {
    let [progress, left] = [0, 0];
    for (const schedule of schedules) {
      const { kind, reason } = await schedule.look({ sinceMs });
      if (kind === "fired" || kind === "gave-up") progress += 1;
      else if (kind !== "idle") left += 1;
      if (kind !== "idle" && kind !== "fired") failure = new Error(`${schedule.name}: ${reason}`);
    }
    // One at a time: two that settle share the messages, as two workers share a queue.
    for (let more = unread.length; more > 0; more -= 1) {
      const message = unread.shift();
      if (message === undefined) break; // another one took the rest
      const outcome = await deliverAgain(process, message).catch((error: unknown) => {
        failure = error;
        return "failed";
      });
      if (outcome !== "failed" && outcome !== "handed-back") progress += 1;
      else unread.push(message);
    }
    if (progress > 0) continue;
    // Last, because it costs the most calls, and committed messages are already sent.
    const swept = await outbox?.sweep({ graceMs: 0 });
    progress += swept?.dispatched ?? 0;
    left += swept?.left ?? 0;
    if (progress > 0) continue;
    if (left + unread.length === 0) return;
    attempt += 1;
    await sleep(retryMs);
  }
  throw failure;
}
