import { isPermanent, PermanentError } from "../../base/errors/errors.ts";
import type { SpanContext } from "../../base/request/trace.ts";
import { asksSystem, checkPayload, type SharedEvent } from "../../parts/messages/envelope.ts";
import type { JobMessage } from "../../parts/messages/job-message.ts";
import { type ClaimKey, claimKey } from "../../parts/once/claim.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { type Consumed, consumeOnce } from "./task.ts";

export interface ConsumeOptions {
  readonly deadlineMs?: number | undefined;
  /** Number of times the message was received, including this one. */
  readonly attempt?: number | undefined;
  /** Time when the message was sent, in milliseconds since the epoch. */
  readonly sinceMs?: number | undefined;
  /** Span that published or enqueued the message. */
  readonly parent?: SpanContext | undefined;
  /** Longest time in which the queue redelivers the message, in milliseconds. Default: 0. */
  readonly redeliveryMs?: number | undefined;
}

/**
 * Runs every consumer of an event, each exactly once (specification 6.4): a consumer that has
 * already handled the event is skipped.
 *
 * @returns the worst outcome, in this order: failed, handed back, failed permanently, processed,
 * skipped.
 * @throws PermanentError if the payload does not match its schema. Error if no feature of this
 * server declares the event.
 */
export async function consumeEvent(
  runtime: Runtime,
  adapters: Adapters,
  event: SharedEvent,
  { deadlineMs, attempt, sinceMs, parent, redeliveryMs }: ConsumeOptions = {},
): Promise<Consumed> {
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
    consumers.map(({ name, run, projection }) =>
      consumeOnce(runtime, adapters, {
        claimed: keyParts("event", name, eventId, tenantId),
        handler: name,
        cause: event,
        isSystem,
        id: eventId,
        logFields: { origRequestId, eventId, causedBy },
        logPrefix: "event",
        kind: "event",
        facts: () => ({ event: type, attempt, sinceMs }),
        deadlineMs,
        parent,
        redeliveryMs,
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
  return worst(outcomes);
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
  { deadlineMs, attempt, sinceMs, parent, redeliveryMs }: ConsumeOptions = {},
): Promise<Consumed> {
  const { name, jobId, tenantId, causedBy, origRequestId } = job;
  const isDelivery = name === runtime.deliveryJob.name;
  const declaration = isDelivery ? runtime.deliveryJob : runtime.server.registry.jobs.get(name);
  if (declaration === undefined)
    throw new Error(`the job ${name} is declared by no feature of this server`);
  const refuse = (problems: string) =>
    new PermanentError(`the payload of ${name} does not fit its schema (${problems})`);
  const payload = await checkPayload(declaration.input, job.payload, refuse);
  const isSystem = asksSystem(job);
  return consumeOnce(runtime, adapters, {
    claimed: keyParts("job", name, jobId, tenantId),
    handler: name,
    cause: job,
    isSystem,
    id: jobId,
    logFields: { origRequestId, jobId, causedBy },
    logPrefix: "job",
    kind: isDelivery ? "delivery" : "job",
    facts: () => ({ channel: isDelivery ? channelOf(job) : undefined, attempt, sinceMs }),
    deadlineMs,
    parent,
    redeliveryMs,
    hasReusableKey: isDelivery && hasOwnKey(job),
    run: (ctx) => declaration.run(ctx, payload, job),
  });
}

/** Whether the sender chose the key of a delivery, which a later delivery may then reuse. */
function hasOwnKey({ payload }: JobMessage): boolean {
  const { key } = payload as { readonly key?: unknown }; // safe: a job's payload is an object
  return typeof key === "string" && key.startsWith("=");
}

/** Returns the channel of a delivery. The delivery itself reports an invalid payload. */
function channelOf({ payload }: JobMessage): string | undefined {
  const { channel } = payload as { readonly channel?: unknown }; // safe: a job's payload is an object
  return typeof channel === "string" ? channel : undefined;
}

type ClaimedMessage = [
  kind: "event" | "job",
  handler: string,
  id: string,
  tenantId: string | undefined,
];

/** Returns the key of the claim of an event's consumer or of a job. */
export function messageClaim(...message: ClaimedMessage): ClaimKey {
  return claimKey(...keyParts(...message));
}

function keyParts(...[kind, handler, id, tenantId]: ClaimedMessage): Parameters<typeof claimKey> {
  return [[kind, handler, tenantId === undefined ? "-" : `=${tenantId}`], id, tenantId];
}

const severity = ["skipped", "processed", "handed-back", "failed"] as const;

function worst(outcomes: readonly Consumed[]): Consumed {
  return outcomes.reduce<Consumed>((one, other) => (rank(other) > rank(one) ? other : one), {
    kind: "skipped",
  });
}

/** Ranks an outcome. A permanent failure ranks below every outcome that needs a redelivery. */
function rank(outcome: Consumed): number {
  const isLost = outcome.kind === "failed" && isPermanent(outcome.error);
  return isLost ? severity.indexOf("processed") + 0.5 : severity.indexOf(outcome.kind);
}
