import { setTimeout as sleep } from "node:timers/promises";
import { usesMessages } from "../../../app/registry/registry.ts";
import { consumeEvent, processMessage, runJob } from "../../../app/run/process-message.ts";
import { consumeOnce } from "../../../app/run/task.ts";
import { readEnvelope, type SharedEvent } from "../../../parts/messages/envelope.ts";
import type { JobMessage } from "../../../parts/messages/job-message.ts";
import { isOrdered, type MessageQueue } from "../../../parts/messages/message-queue.ts";
import type { TestClock } from "./test-clock.ts";
import type { TestProcess } from "./test-process.ts";
import type { TestStack } from "./test-stack.ts";

/** Advance of the clock per step while messages are hidden. */
const stepMs = 5_000;

interface Settling extends Pick<TestStack, "waitMs" | "mostMs"> {
  /** Time from which schedules are due. */
  readonly sinceMs: number;
  readonly clock: TestClock;
  readonly maxSteps?: number | undefined;
}

/** @throws Error naming each message that is stuck or failed permanently, with its reason. */
export async function settle(
  process: TestProcess,
  { clock, sinceMs, waitMs, mostMs, maxSteps = 120 }: Settling,
): Promise<void> {
  const { runtime, adapters } = process;
  const { registry } = runtime.server;
  const messaging = usesMessages(registry) ? await adapters.messaging.open() : undefined;
  const queues = messaging === undefined ? [] : [messaging.events, ...messaging.received];
  // Loaded lazily, because only servers with schedules need the module.
  const { createSchedules } =
    registry.schedules.size === 0 ? {} : await import("../../../app/schedules/schedules.ts");
  const schedules = (await createSchedules?.(runtime, adapters, consumeOnce)) ?? [];
  const [deadLettered, gaveUp]: [string[], string[]] = [[], []];
  const stuck = new Map<string, string>();
  let refused = 0;
  const sweep = async () =>
    messaging === undefined
      ? { dispatched: 0, left: 0, setAside: 0 }
      : (await runtime.runs.open()).outbox.sweep({ graceMs: 0 });

  const work = async (queue: MessageQueue): Promise<number> => {
    const messages = await queue.receive();
    const behind = new Map<string, number>();
    for (const message of messages) {
      const group = (isOrdered(queue.name) ? message.group : undefined) ?? message.id;
      const afterMs = behind.get(group);
      if (afterMs !== undefined) {
        await queue.changeVisibility(message.receipt, afterMs);
        continue;
      }
      const outcome = await processMessage(runtime, adapters, queue, message);
      const shown = message.body.slice(0, 200);
      if (outcome.kind === "done") await queue.remove(message.receipt);
      if (outcome.kind === "dead-lettered") deadLettered.push(`${shown} (${outcome.reason})`);
      stuck.delete(message.id);
      if (outcome.kind !== "later") continue;
      behind.set(group, outcome.afterMs);
      const why = outcome.reason === undefined ? "" : ` (${outcome.reason})`;
      stuck.set(message.id, `${shown}${why}`);
    }
    return messages.length;
  };

  const fire = async () => {
    let [fired, due] = [0, 0];
    for (const schedule of schedules) {
      const { kind, reason } = await schedule.look({ sinceMs });
      if (kind === "gave-up") gaveUp.push(`${schedule.name} (${reason})`);
      stuck.delete(schedule.name);
      if (kind === "fired" || kind === "gave-up") fired += 1;
      else if (kind !== "idle") {
        due += 1;
        stuck.set(schedule.name, schedule.name);
      }
    }
    return { fired, due };
  };

  let [steps, restMs] = [0, mostMs];
  for (;;) {
    const { fired, due } = await fire();
    if (fired > 0) continue;
    let worked = 0;
    for (const queue of queues) worked += await work(queue);
    if (worked > 0) continue;
    // Last, because most committed events are already dispatched.
    const { dispatched, left, setAside } = await sweep();
    refused += setAside;
    if (dispatched > 0) continue;
    const sizes = await Promise.all(queues.map((queue) => queue.size()));
    const waiting = sizes.reduce((sum, { visible, hidden }) => sum + visible + hidden, left + due);
    if (waiting === 0) break;
    steps += 1;
    if (steps > maxSteps) {
      const names = [...stuck.values()].join("; ") || "nothing that came to this process";
      throw new Error(`app.settled: ${waiting} are left in schedules, outbox and queues: ${names}`);
    }
    const moveMs = Math.min(stepMs, restMs);
    restMs -= moveMs;
    clock.advance(moveMs);
    await sleep(waitMs);
  }
  const [lost] = [
    refused > 0 && `${refused} events were set aside, since the bus refuses them: see app.logs`,
    deadLettered.length > 0 && `in the dead-letter queue: ${deadLettered.join("; ")}`,
    gaveUp.length > 0 && `schedules that failed too often: ${gaveUp.join(", ")}: see app.logs`,
  ].filter(Boolean);
  if (lost) throw new Error(`app.settled: ${lost}`);
}

export async function deliverAgain(
  { runtime, adapters }: Pick<TestProcess, "runtime" | "adapters">,
  message: SharedEvent | JobMessage,
): Promise<"processed" | "skipped" | "handed-back"> {
  const outcome = await ("jobId" in message
    ? runJob(runtime, adapters, message)
    : consumeEvent(runtime, adapters, readEnvelope(JSON.stringify(message))));
  if (outcome.kind === "failed") throw outcome.error;
  return outcome.kind;
}
