import { PermanentError } from "../../base/errors/errors.ts";
import { asksSystem, checkPayload, type SharedEvent } from "../../parts/messages/envelope.ts";
import type { JobMessage } from "../../parts/messages/job-message.ts";
import { type ReadMessage, readMessage } from "../../parts/messages/message-guard.ts";
import type { MessageQueue, QueueMessage } from "../../parts/messages/message-queue.ts";
import type { Waited } from "../../parts/messages/waited.ts";
import { type ClaimKey, claimKey } from "../../parts/once/claim.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { TaskOutcome } from "../schedules/schedules.ts";
import { consumeBy, type EventOutcome } from "./event-outcome.ts";
import type { GroupLine } from "./group-line.ts";
import { endMessage, type MessageFacts, type Processed } from "./message-end.ts";
import { consumeOnce, type Task } from "./task.ts";

/** Never throws. */
export async function processMessage(
  runtime: Runtime,
  adapters: Adapters,
  queue: MessageQueue,
  message: QueueMessage,
  { deadlineMs }: Pick<ConsumeOptions, "deadlineMs"> = {},
): Promise<Processed> {
  if (queue.holds === "others") {
    const { receiveMessage } = await import("./receive-event.ts");
    return receiveMessage(runtime, adapters, queue, message, { deadlineMs });
  }
  let read: ReadMessage | undefined;
  let line: GroupLine | undefined;
  let outcome: EventOutcome;
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
        : consumeEvent(runtime, adapters, read.event, options, read.waited));
  } catch (error) {
    outcome = { kind: "failed", error };
  }
  return endMessage(runtime, adapters, { queue, message, read, line }, outcome, {
    kind: kindOf(runtime, read),
    receives: attemptsOf(message, read),
    traceId: read?.trace?.traceId,
    ids: idsOf(read),
  });
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
  const { jobs, rateLimits } = runtime.server.registry;
  const { order, concurrency } = jobs.get(read.job.name) ?? {};
  // Any job may take from a declared rate limit.
  const hasBoth = order !== undefined && (concurrency !== undefined || rateLimits.size > 0);
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
 * @param waited - how the event has waited for a limit, if it has.
 * @returns the worst outcome of all.
 * @throws PermanentError if the payload does not match its schema. Error if no feature of this
 * server declares the event.
 */
export async function consumeEvent(
  runtime: Runtime,
  adapters: Adapters,
  event: SharedEvent,
  options: ConsumeOptions = {},
  waited?: Waited,
): Promise<EventOutcome> {
  const { registry } = runtime.server;
  const { type, eventId, tenantId, causedBy, origRequestId } = event;
  const declaration = registry.events.get(type);
  // Not permanent: during a rolling deployment the next process may declare the event.
  if (declaration === undefined)
    throw new Error(`the event ${type} is declared by no feature of this server`);
  const refuse = (problems: string) =>
    new PermanentError(`the payload of ${type} does not fit its schema (${problems})`);
  const { schema, keptDays } = declaration;
  const consumers = [...registry.consumers.values()].filter((consumer) => consumer.type === type);
  const isShared = consumers.length > 1;
  // A copy for each consumer that runs, so that none gets what another has changed.
  const checked = async () => {
    const payload = isShared ? structuredClone(event.payload) : event.payload;
    return { ...event, payload: await checkPayload(schema, payload, refuse) };
  };
  const first = await checked();
  const isSystem = asksSystem(event);
  const consume = ({ name, run, projection, concurrency }: (typeof consumers)[number]) =>
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
        const own = isShared ? await checked() : first;
        if (projection === undefined) return run(ctx, own);
        const { projectLive } = await import("./project-event.ts");
        // The cast is safe: boot rejects a projection of events that are not kept.
        return projectLive(scope, adapters, ctx, {
          projection,
          event: own,
          keptDays: keptDays as number,
        });
      },
    });
  return consumeBy(consumers, waited, consume);
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

function kindOf(
  { deliveryJob }: Pick<Runtime, "deliveryJob">,
  read: ReadMessage | undefined,
): MessageFacts["kind"] {
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
