import { setTimeout as sleep } from "node:timers/promises";
import { type Registry, usesMessages, usesQueues } from "../../../app/registry/registry.ts";
import { consumeEvent, processMessage, runJob } from "../../../app/run/process-message.ts";
import { receiveEvent } from "../../../app/run/receive-event.ts";
import { consumeOnce } from "../../../app/run/task.ts";
import type { Adapters, Messaging } from "../../../app/runtime/adapters.ts";
import type { Runtime } from "../../../app/runtime/runtime.ts";
import type { TaskOutcome } from "../../../app/schedules/schedules.ts";
import { readEnvelope, type SharedEvent } from "../../../parts/messages/envelope.ts";
import type { JobMessage } from "../../../parts/messages/job-message.ts";
import { isOrdered, type MessageQueue } from "../../../parts/messages/message-queue.ts";
import { readReceived } from "../../../parts/messages/received-event.ts";
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
  const queues = usesQueues(registry) ? queuesOf(registry, await adapters.messaging.open()) : [];
  // Loaded lazily, because only servers with schedules need the module.
  const { createSchedules } =
    registry.schedules.size === 0 ? {} : await import("../../../app/schedules/schedules.ts");
  const schedules = (await createSchedules?.(runtime, adapters, consumeOnce)) ?? [];
  const [deadLettered, gaveUp]: [string[], string[]] = [[], []];
  const stuck = new Map<string, string>();
  let refused = 0;
  const sweep = async () =>
    usesMessages(registry)
      ? (await runtime.runs.open()).outbox.sweep({ graceMs: 0 })
      : { dispatched: 0, left: 0, setAside: 0 };

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

function queuesOf(registry: Registry, { events, received, others }: Messaging): MessageQueue[] {
  const own = usesMessages(registry) ? [events, ...received] : [];
  return registry.receivers.size > 0 ? [...own, others] : own;
}

/** Event of another sender, in the form in which EventBridge puts it into a queue. */
export interface OthersEvent {
  readonly source: string;
  readonly "detail-type": string;
  readonly detail: object;
  /** Default: a new one. */
  readonly id?: string;
  /** In ISO 8601. Default: empty, like `account` and `region`. */
  readonly time?: string;
  readonly account?: string;
  readonly region?: string;
  readonly resources?: readonly string[];
}

export async function deliverAgain(
  { runtime, adapters }: Pick<TestProcess, "runtime" | "adapters">,
  message: SharedEvent | JobMessage | OthersEvent,
): Promise<"processed" | "skipped" | "handed-back"> {
  const outcome = await deliver(runtime, adapters, message);
  if (outcome.kind === "failed") throw outcome.error;
  return outcome.kind;
}

async function deliver(
  runtime: Runtime,
  adapters: Adapters,
  message: SharedEvent | JobMessage | OthersEvent,
): Promise<TaskOutcome> {
  if ("jobId" in message) return runJob(runtime, adapters, message);
  if (!("detail-type" in message))
    return consumeEvent(runtime, adapters, readEnvelope(JSON.stringify(message)));
  const { event } = readReceived(JSON.stringify({ id: crypto.randomUUID(), ...message }));
  return receiveEvent(runtime, adapters, event);
}
