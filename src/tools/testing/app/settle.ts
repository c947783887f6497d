import { setTimeout as sleep } from "node:timers/promises";
import { type Registry, usesMessages, usesQueues } from "../../../app/registry/registry.ts";
import { consumeEvent, processMessage, runJob } from "../../../app/run/process-message.ts";
import { receiveEvent } from "../../../app/run/receive-event.ts";
import { consumeOnce } from "../../../app/run/task.ts";
import type { Adapters, Messaging } from "../../../app/runtime/adapters.ts";
import type { Runtime } from "../../../app/runtime/runtime.ts";
import type { Looked } from "../../../app/schedules/schedule-look.ts";
import type { TaskOutcome } from "../../../app/schedules/schedules.ts";
import { readEnvelope, type SharedEvent } from "../../../parts/messages/envelope.ts";
import type { JobMessage } from "../../../parts/messages/job-message.ts";
import { isOrdered, type MessageQueue } from "../../../parts/messages/message-queue.ts";
import type { Swept } from "../../../parts/messages/outbox-store.ts";
import { readReceived } from "../../../parts/messages/received-event.ts";
import type { TestClock } from "./test-clock.ts";
import type { TestProcess } from "./test-process.ts";
import type { TestStack } from "./test-stack.ts";

/** Advance of the clock per step while messages are hidden. */
const stepMs = 5_000;

/** Way in which an app handles messages and waits, while it settles. */
export interface Settling {
  /** Time from which schedules are due. */
  readonly sinceMs: number;
  /** Called with what became of each schedule. */
  looked(name: string, outcome: Looked): void;
  /** Handles the messages that wait. Returns the number that it got further with. */
  work(): Promise<number>;
  /** Returns the number of messages that are left. */
  waiting(): Promise<number>;
  /** Waits until more can be done. @throws Error if it waited too often. */
  rest(left: number): Promise<void>;
}

/**
 * Fires due schedules, handles messages and sweeps the outbox until nothing is left.
 *
 * @returns the number of messages that the sweeps set aside.
 */
export async function settleWith(
  { runtime, adapters }: Pick<TestProcess, "runtime" | "adapters">,
  { sinceMs, looked, work, waiting, rest }: Settling,
): Promise<number> {
  const { registry } = runtime.server;
  const outbox = usesMessages(registry) ? (await runtime.runs.open()).outbox : undefined;
  // Loaded lazily, because only servers with schedules need the module.
  const { createSchedules } =
    registry.schedules.size === 0 ? {} : await import("../../../app/schedules/schedules.ts");
  const schedules = (await createSchedules?.(runtime, adapters, consumeOnce)) ?? [];
  let sweeps = true;
  for (let setAside = 0; ; ) {
    let [progress, left] = [0, 0];
    for (const schedule of schedules) {
      const outcome = await schedule.look({ sinceMs });
      looked(schedule.name, outcome);
      if (outcome.kind === "fired" || outcome.kind === "gave-up") progress += 1;
      else if (outcome.kind !== "idle") left += 1;
    }
    progress += await work();
    if (progress > 0) {
      sweeps = true;
      continue;
    }
    // Last, because it costs the most calls, and most committed messages are already sent.
    const swept: Swept | undefined = sweeps ? await outbox?.sweep({ graceMs: 0 }) : undefined;
    setAside += swept?.setAside ?? 0;
    if ((swept?.dispatched ?? 0) > 0) continue;
    left += (swept?.left ?? 0) + (await waiting());
    if (left === 0 && sweeps) return setAside;
    // While messages wait, the outbox stays as this sweep found it.
    sweeps = left === 0 || (swept?.left ?? 0) > 0;
    if (left > 0) await rest(left);
  }
}

/** @throws Error naming each message that is stuck or failed permanently, with its reason. */
export async function settle(
  process: TestProcess,
  {
    clock,
    sinceMs,
    waitMs,
    mostMs,
    maxSteps = 120,
  }: Pick<TestStack, "waitMs" | "mostMs"> &
    Pick<Settling, "sinceMs"> & {
      readonly clock: TestClock;
      readonly maxSteps?: number | undefined;
    },
): Promise<void> {
  const { runtime, adapters } = process;
  const { registry } = runtime.server;
  const queues = usesQueues(registry) ? queuesOf(registry, await adapters.messaging.open()) : [];
  const [deadLettered, gaveUp]: [string[], string[]] = [[], []];
  const stuck = new Map<string, string>();

  const workOn = async (queue: MessageQueue): Promise<number> => {
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

  let [steps, restMs] = [0, mostMs];
  const refused = await settleWith(process, {
    sinceMs,
    looked: (name, { kind, reason }) => {
      stuck.delete(name);
      if (kind === "gave-up") gaveUp.push(`${name} (${reason})`);
      else if (kind !== "idle" && kind !== "fired") stuck.set(name, name);
    },
    work: async () => {
      let worked = 0;
      for (const queue of queues) worked += await workOn(queue);
      return worked;
    },
    waiting: async () => {
      const sizes = await Promise.all(queues.map((queue) => queue.size()));
      return sizes.reduce((sum, { visible, hidden }) => sum + visible + hidden, 0);
    },
    rest: async (left) => {
      steps += 1;
      if (steps > maxSteps) {
        const names = [...stuck.values()].join("; ") || "nothing that came to this process";
        throw new Error(`app.settled: ${left} are left in schedules, outbox and queues: ${names}`);
      }
      const moveMs = Math.min(stepMs, restMs);
      restMs -= moveMs;
      clock.advance(moveMs);
      await sleep(waitMs);
    },
  });
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
