import { errorLog } from "../../base/errors/describe.ts";
import { isPermanent, PermanentError } from "../../base/errors/errors.ts";
import { asksSystem, checkPayload, type SharedEvent } from "../../parts/messages/envelope.ts";
import type { JobMessage } from "../../parts/messages/job-message.ts";
import { type ReadMessage, readMessage } from "../../parts/messages/message-guard.ts";
import {
  backoffMs,
  type MessageQueue,
  type QueueMessage,
} from "../../parts/messages/message-queue.ts";
import { type ClaimKey, claimKey } from "../../parts/once/claim.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { TaskOutcome } from "../schedules/schedules.ts";
import type { GroupLine } from "./group-line.ts";
import { consumeOnce, type Task } from "./task.ts";

export type Processed =
  /** The caller acknowledges the message. */
  | { readonly kind: "done" }
  /** The message was handed back. The queue redelivers it after `afterMs`. */
  | { readonly kind: "later"; readonly afterMs: number; readonly reason?: string }
  /** The message is in the dead-letter queue, and the reason in the log. */
  | { readonly kind: "dead-lettered"; readonly reason: string };

/** Never throws. */
export async function processMessage(
  runtime: Runtime,
  adapters: Adapters,
  queue: MessageQueue,
  message: QueueMessage,
  { deadlineMs }: Pick<ConsumeOptions, "deadlineMs"> = {},
): Promise<Processed> {
  let read: ReadMessage | undefined;
  let line: GroupLine | undefined;
  let outcome: TaskOutcome;
  try {
    read = readMessage(message.body);
    const redelivery = queue.redeliveryMs.value ?? queue.redeliveryMs.open();
    const guard = runtime.messages.value ?? (await runtime.messages.open());
    await guard.admit(read, queue, message.id);
    const attempt = attemptsOf(message, read);
    const sinceMs = read.waited?.sinceMs ?? message.sentMs;
    const redeliveryMs = await redelivery;
    const options = { deadlineMs, attempt, sinceMs, parent: read.trace, redeliveryMs };
    line = await lineOf(runtime, adapters, queue, message, read);
    if (line?.mayRun === false) outcome = { kind: "handed-back", afterMs: 0, mustWait: true };
    else
      outcome = await ("job" in read
        ? runJob(runtime, adapters, read.job, options)
        : consumeEvent(runtime, adapters, read.event, options));
  } catch (error) {
    outcome = { kind: "failed", error };
  }
  if (outcome.kind === "processed" || outcome.kind === "skipped") {
    const hasLeft = await (line?.leave() ?? true);
    // The message is redelivered, and then skipped.
    return hasLeft ? { kind: "done" } : handBack(runtime, queue, message, backoffMs[0]);
  }
  if (outcome.kind === "handed-back" && outcome.mustWait === true) {
    const { sendAgain } = await import("./send-again.ts");
    const received = { message, read: read as ReadMessage, line }; // safe: only a message that was read waits
    const afterMs = await sendAgain(runtime, adapters, queue, received, outcome.afterMs);
    return afterMs === undefined ? { kind: "done" } : handBack(runtime, queue, message, afterMs);
  }
  if (outcome.kind === "handed-back") return handBack(runtime, queue, message, outcome.afterMs);
  const failed = await fail(runtime, queue, message, outcome.error, read);
  // If this fails, the next jobs find out that it has gone.
  await (failed.kind === "later" || line?.leave());
  return failed;
}

/** A job with an order and a limit must not overtake a job of its group that waits. */
async function lineOf(
  runtime: Runtime,
  adapters: Adapters,
  queue: MessageQueue,
  message: QueueMessage,
  read: ReadMessage,
): Promise<GroupLine | undefined> {
  if (!("job" in read)) return undefined;
  const { order, concurrency } = runtime.server.registry.jobs.get(read.job.name) ?? {};
  const hasBoth = order !== undefined && concurrency !== undefined;
  // A job that waits has a place, even if another version of the server has declared it.
  if (!hasBoth && read.waited?.position === undefined) return undefined;
  const { openLine } = await import("./group-line.ts");
  return openLine(runtime, adapters, queue, message, read);
}

/** A message that has waited was sent again, and SQS starts to count at 1. */
function attemptsOf({ receives }: QueueMessage, read: ReadMessage | undefined): number {
  return receives + (read?.waited?.attempts ?? 0);
}

export type ConsumeOptions = Pick<
  Task,
  "deadlineMs" | "attempt" | "sinceMs" | "parent" | "redeliveryMs"
>;

/**
 * Runs every consumer of an event, each exactly once (specification 6.4): a consumer that has
 * already handled the event is skipped.
 *
 * @returns the worst outcome, in this order: failed, waiting, handed back, failed permanently,
 * processed, skipped.
 * @throws PermanentError if the payload does not match its schema. Error if no feature of this
 * server declares the event.
 */
export async function consumeEvent(
  runtime: Runtime,
  adapters: Adapters,
  event: SharedEvent,
  options: ConsumeOptions = {},
): Promise<TaskOutcome> {
  const { registry } = runtime.server;
  const { type, eventId, tenantId, causedBy, origRequestId } = event;
  const declaration = registry.events.get(type);
  // Not permanent: during a rolling deployment the next process may declare the event.
  if (declaration === undefined)
    throw new Error(`the event ${type} is declared by no feature of this server`);
  const refuse = (problems: string) =>
    new PermanentError(`the payload of ${type} does not fit its schema (${problems})`);
  const payload = await checkPayload(declaration.schema, event.payload, refuse);
  const isSystem = asksSystem(event);
  const { keptDays } = declaration;
  const shared = { ...event, payload };
  const consumers = [...registry.consumers.values()].filter((consumer) => consumer.type === type);
  const outcomes = await Promise.all(
    consumers.map(({ name, run, projection, concurrency }) =>
      consumeOnce(runtime, adapters, {
        claimed: keyParts("event", name, eventId, tenantId),
        handler: name,
        cause: event,
        isSystem,
        id: eventId,
        logFields: { origRequestId, eventId, causedBy },
        logPrefix: "event",
        kind: "event",
        event: type,
        concurrency,
        ...options,
        run: async (ctx, scope) => {
          if (projection === undefined) return run(ctx, shared);
          const { projectLive } = await import("./project-event.ts");
          // The cast is safe: boot rejects a projection of events that are not kept.
          return projectLive(scope, adapters, ctx, {
            projection,
            event: shared,
            keptDays: keptDays as number,
          });
        },
      }),
    ),
  );
  return outcomes.toSorted((one, other) => rank(other) - rank(one))[0] ?? { kind: "skipped" };
}

/**
 * Runs a job, unless it is already done (specification 6.5).
 *
 * @throws PermanentError if the payload does not match its schema. Error if no feature of this
 * server declares the job.
 */
export async function runJob(
  runtime: Runtime,
  adapters: Adapters,
  job: JobMessage,
  options: ConsumeOptions = {},
): Promise<TaskOutcome> {
  const { name, jobId, tenantId, causedBy, origRequestId } = job;
  const isDelivery = name === runtime.deliveryJob.name;
  const declaration = isDelivery ? runtime.deliveryJob : runtime.server.registry.jobs.get(name);
  if (declaration === undefined)
    throw new Error(`the job ${name} is declared by no feature of this server`);
  const refuse = (problems: string) =>
    new PermanentError(`the payload of ${name} does not fit its schema (${problems})`);
  const payload = await checkPayload(declaration.input, job.payload, refuse);
  // Safe cast: a job's payload is an object.
  const { channel, key }: { readonly channel?: unknown; readonly key?: unknown } = isDelivery
    ? (job.payload as object)
    : {};
  return consumeOnce(runtime, adapters, {
    claimed: keyParts("job", name, jobId, tenantId),
    handler: name,
    cause: job,
    isSystem: asksSystem(job),
    id: jobId,
    logFields: { origRequestId, jobId, causedBy },
    logPrefix: "job",
    kind: isDelivery ? "delivery" : "job",
    // The delivery itself reports an invalid payload.
    channel: typeof channel === "string" ? channel : undefined,
    concurrency: declaration.concurrency,
    ...options,
    // A later delivery may reuse a key that its sender chose.
    hasReusableKey: typeof key === "string" && key.startsWith("="),
    run: (ctx) => declaration.run(ctx, payload, job),
  });
}

type ClaimedMessage = [
  kind: "event" | "job",
  handler: string,
  id: string,
  tenantId: string | undefined,
];

export function messageClaim(...message: ClaimedMessage): ClaimKey {
  return claimKey(...keyParts(...message));
}

function keyParts(...[kind, handler, id, tenantId]: ClaimedMessage): Parameters<typeof claimKey> {
  return [[kind, handler, tenantId === undefined ? "-" : `=${tenantId}`], id, tenantId];
}

const ranks = { skipped: 0, processed: 1, "handed-back": 3, failed: 5 } as const;

/** A permanent failure ranks below every outcome that needs a redelivery. */
function rank(outcome: TaskOutcome): number {
  if (outcome.kind === "handed-back" && outcome.mustWait === true) return 4;
  return outcome.kind === "failed" && isPermanent(outcome.error) ? 2 : ranks[outcome.kind];
}

/** Retries a message. After the last attempt, or a permanent error, it becomes a dead letter. */
async function fail(
  runtime: Pick<Runtime, "log" | "metrics" | "deliveryJob">,
  queue: MessageQueue,
  message: QueueMessage,
  error: unknown,
  read: ReadMessage | undefined,
): Promise<Processed> {
  const reason = String(errorLog(error).data["message"]);
  const trace = read?.trace === undefined ? {} : { trace_id: read.trace.traceId };
  const messageId = message.id;
  const receives = attemptsOf(message, read);
  const facts = { queue: queue.name, messageId, receives, reason, ...trace, ...idsOf(read) };
  try {
    const most = await queue.maxReceives();
    const isLast = most !== undefined && receives >= most;
    if ((isLast || isPermanent(error)) && (await queue.deadLetter(message))) {
      runtime.log.error("queue.dead_lettered", facts);
      runtime.metrics?.record("keelson.dead_letters", 1, { "keelson.kind": kindOf(runtime, read) });
      return { kind: "dead-lettered", reason };
    }
  } catch (failure) {
    runtime.log.error("queue.dead_letter_failed", { ...facts, failure: String(failure) });
  }
  // The cast is safe: the number of receives starts at 1.
  const afterMs = backoffMs[Math.min(receives, backoffMs.length) - 1] as number;
  runtime.log.warn("queue.retry", { ...facts, afterMs });
  return { ...(await handBack(runtime, queue, message, afterMs)), reason };
}

/** If handing back fails, the queue redelivers when the visibility timeout expires. */
async function handBack(
  runtime: Pick<Runtime, "log">,
  queue: MessageQueue,
  { id, receipt }: QueueMessage,
  afterMs: number,
): Promise<Extract<Processed, { kind: "later" }>> {
  try {
    await queue.changeVisibility(receipt, afterMs);
  } catch (error) {
    runtime.log.warn("queue.hand_back_failed", {
      queue: queue.name,
      messageId: id,
      reason: String(error),
    });
  }
  return { kind: "later", afterMs };
}

function kindOf({ deliveryJob }: Pick<Runtime, "deliveryJob">, read: ReadMessage | undefined) {
  if (read === undefined) return undefined;
  if ("event" in read) return "event";
  return read.job.name === deliveryJob.name ? "delivery" : "job";
}

/** For the log. Empty if the message could not be read. */
function idsOf(read: ReadMessage | undefined): Record<string, string> {
  if (read === undefined) return {};
  const { origRequestId, causedBy, tenantId = "" } = "job" in read ? read.job : read.event;
  const own =
    "job" in read
      ? { job: read.job.name, jobId: read.job.jobId }
      : { event: read.event.type, eventId: read.event.eventId };
  return { origRequestId, causedBy, tenantId, ...own };
}
