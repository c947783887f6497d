import { describeError } from "../../base/errors/describe.ts";
import { isPermanent, PermanentError } from "../../base/errors/permanent-error.ts";
import type { User } from "../../base/identity/user.ts";
import type { SpanContext } from "../../base/request/trace.ts";
import { asksSystem, type Cause } from "../../parts/messages/cause.ts";
import { checkPayload } from "../../parts/messages/check-payload.ts";
import type { SharedEvent } from "../../parts/messages/envelope.ts";
import type { JobMessage } from "../../parts/messages/job-message.ts";
import type { WriteAnswer } from "../../parts/once/answer.ts";
import {
  type ClaimKey,
  claimKey,
  keyText,
  messageRetentionMs,
  skewMs,
} from "../../parts/once/claim.ts";
import type { TransactionItem } from "../../parts/once/claim-store.ts";
import type { PipelineContext } from "../features/pipeline-context.ts";
import type { TaskEnd } from "../observe/run-observer.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { type RequestScope, runInMessageScope } from "../runtime/scope.ts";
import { run } from "./run.ts";

/** Outcome of the work that a message or a schedule starts. */
export type Consumed =
  | { readonly kind: "processed" }
  /** The work was already done. */
  | { readonly kind: "skipped" }
  /** A duplicate is running, for at most `afterMs`. */
  | { readonly kind: "handed-back"; readonly afterMs: number }
  /** The work failed. The error is logged. */
  | { readonly kind: "failed"; readonly error: unknown };

/**
 * One piece of work with its own claim: one consumer of an event, one job, or one fire of a
 * schedule.
 */
export interface Task {
  readonly key: ClaimKey;
  readonly handler: string;
  readonly cause: Cause;
  /** ID of the event, the job or the fire. Events and jobs of the run carry it as their cause. */
  readonly id: string;
  /** Fields that the log lines of the task carry. */
  readonly logFields: Readonly<Record<string, string>>;
  /** Prefix of the log lines of the task. */
  readonly logPrefix: "event" | "job" | "schedule";
  readonly kind: Exclude<TaskEnd["kind"], "run">;
  /** Reads the facts for the observer when the task ends. */
  readonly facts: () => Pick<TaskEnd, "attempt" | "sinceMs" | "event" | "channel">;
  /** Time when the process ends, in milliseconds since the epoch. */
  readonly deadlineMs: number | undefined;
  /** Span of the sender. Default: the task starts a new trace. */
  readonly parent?: SpanContext | undefined;
  /** Time for which the completed task is remembered, in milliseconds. Default: one day. */
  readonly retentionMs?: number | undefined;
  /** Whether other work may reuse the key later. Default `false`. */
  readonly hasReusableKey?: boolean | undefined;
  readonly run: (ctx: PipelineContext, scope: RequestScope) => unknown;
  /** Creates keelson's items that record the end of the run. See `Work.own`. */
  readonly own?: (() => readonly TransactionItem[]) | undefined;
}

/** Options for the processing of one message. */
export interface ConsumeOptions {
  readonly deadlineMs?: number | undefined;
  /** Number of times the message was received, including this one. */
  readonly attempt?: number | undefined;
  /** Time when the message was sent, in milliseconds since the epoch. */
  readonly sinceMs?: number | undefined;
  /** Span that published or enqueued the message. */
  readonly parent?: SpanContext | undefined;
  /** Time for which the completed work is remembered, in milliseconds. Default: one day. */
  readonly retentionMs?: number | undefined;
}

/**
 * Runs every consumer of an event, each exactly once (specification 6.4). A consumer that has
 * already handled the event skips it, independently of the others.
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
  { deadlineMs, attempt, sinceMs, parent, retentionMs }: ConsumeOptions = {},
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
  const { keptDays } = declaration;
  const shared = { ...event, payload };
  const consumers = [...registry.consumers.values()].filter((consumer) => consumer.type === type);
  const outcomes = await Promise.all(
    consumers.map(({ name, run, projection }) =>
      consumeOnce(runtime, adapters, {
        key: messageClaim("event", name, eventId, tenantId),
        handler: name,
        cause: event,
        id: eventId,
        logFields: { origRequestId, eventId, causedBy },
        logPrefix: "event",
        kind: "event",
        facts: () => ({ event: type, attempt, sinceMs }),
        deadlineMs,
        parent,
        retentionMs,
        run: async (ctx, scope) => {
          if (projection === undefined) return run(ctx, shared);
          const { projectLive } = await import("./project-event.ts");
          // Safe: boot fails for a projection of events that are not kept.
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
  { deadlineMs, attempt, sinceMs, parent, retentionMs }: ConsumeOptions = {},
): Promise<Consumed> {
  const { name, jobId, tenantId, causedBy, origRequestId } = job;
  const isDelivery = name === runtime.deliveryJob.name;
  const declaration = isDelivery ? runtime.deliveryJob : runtime.server.registry.jobs.get(name);
  if (declaration === undefined)
    throw new Error(`the job ${name} is declared by no feature of this server`);
  const refuse = (problems: string) =>
    new PermanentError(`the payload of ${name} does not fit its schema (${problems})`);
  const payload = await checkPayload(declaration.input, job.payload, refuse);
  return consumeOnce(runtime, adapters, {
    key: messageClaim("job", name, jobId, tenantId),
    handler: name,
    cause: job,
    id: jobId,
    logFields: { origRequestId, jobId, causedBy },
    logPrefix: "job",
    kind: isDelivery ? "delivery" : "job",
    facts: () => ({ channel: isDelivery ? channelOf(job) : undefined, attempt, sinceMs }),
    deadlineMs,
    parent,
    retentionMs,
    hasReusableKey: isDelivery && hasOwnKey(job),
    run: (ctx) => declaration.run(ctx, payload, job),
  });
}

/**
 * Checks whether the sender chose the key of a delivery. A later delivery may use such a key again.
 */
function hasOwnKey({ payload }: JobMessage): boolean {
  const { key } = payload as { readonly key?: unknown }; // safe: a job's payload is an object
  return typeof key === "string" && key.startsWith("=");
}

/** Reads the channel unchecked. The delivery reports an invalid payload. */
function channelOf({ payload }: JobMessage): string | undefined {
  const { channel } = payload as { readonly channel?: unknown }; // safe: a job's payload is an object
  return typeof channel === "string" ? channel : undefined;
}

/**
 * Builds the claim key that records that a consumer has handled an event, or that a job is done.
 */
export function messageClaim(
  kind: "event" | "job",
  handler: string,
  id: string,
  tenantId: string | undefined,
): ClaimKey {
  return claimKey([kind, handler, tenantId === undefined ? "-" : `=${tenantId}`], id, tenantId);
}

const severity = ["skipped", "processed", "handed-back", "failed"] as const;

function worst(outcomes: readonly Consumed[]): Consumed {
  return outcomes.reduce<Consumed>((one, other) => (rank(other) > rank(one) ? other : one), {
    kind: "skipped",
  });
}

/**
 * Ranks an outcome. A failure that a retry may fix outranks a permanent one, because the message
 * must be redelivered for it.
 */
function rank(outcome: Consumed): number {
  const isLost = outcome.kind === "failed" && isPermanent(outcome.error);
  return isLost ? severity.indexOf("processed") + 0.5 : severity.indexOf(outcome.kind);
}

/** Placeholder answer of a message. It only records that the work is done. */
const done: WriteAnswer = Object.freeze({ status: 204, headers: {}, cookies: [], body: undefined });

/**
 * Runs a task in its scope. A duplicate in the same process waits for the first run to end, and
 * then checks the claim. Never throws.
 */
export async function consumeOnce(
  runtime: Runtime,
  adapters: Adapters,
  task: Task,
): Promise<Consumed> {
  const { key, handler, cause, deadlineMs, logFields, parent } = task;
  const { tenantId, userId, origRequestId: requestId } = cause;
  const user: User = Object.freeze({ id: userId, tenantId, roles: Object.freeze([]) });
  const running = keyText(key);
  // The duplicate reads the claim, regardless of how the first run ends.
  for (
    let other = runtime.inFlight.get(running);
    other !== undefined;
    other = runtime.inFlight.get(running)
  ) {
    await Promise.allSettled([other.work]);
  }
  const { event, channel } = task.facts();
  const subject = { kind: task.kind, about: event ?? channel ?? handler, id: task.id };
  const facts = {
    requestId,
    user,
    handler,
    deadlineMs,
    isSystem: asksSystem(cause),
    logFields,
    parent,
    subject,
  };
  const work = runInMessageScope(runtime, facts, (scope) => observed(scope, adapters, task));
  runtime.inFlight.set(running, { work, handler, ids: logFields });
  try {
    return await work;
  } finally {
    runtime.inFlight.delete(running);
  }
}

async function observed(scope: RequestScope, adapters: Adapters, task: Task): Promise<Consumed> {
  const consumed = await claimed(scope, adapters, task);
  const { observer } = scope.runtime;
  if (observer === undefined) return consumed;
  const { afterMs, error } = consumed as { readonly afterMs?: number; readonly error?: unknown }; // safe: some kinds have one
  const outcome = consumed.kind === "skipped" ? "processed" : consumed.kind;
  observer.ended(scope, { kind: task.kind, outcome, ...task.facts(), afterMs, error });
  return consumed;
}

/**
 * Runs the task under its claim. Never throws, because other consumers of the event are running.
 */
async function claimed(scope: RequestScope, adapters: Adapters, task: Task): Promise<Consumed> {
  const {
    key,
    logPrefix,
    id,
    cause,
    deadlineMs,
    hasReusableKey,
    retentionMs = messageRetentionMs(0),
  } = task;
  const { runtime, log } = scope;
  try {
    const ended = await run(scope, adapters, {
      logPrefix,
      claim: { kind: "message", key, hasReusableKey, deadlineMs, retentionMs, replayedHeaders: [] },
      cause: {
        causedBy: id,
        origRequestId: cause.origRequestId,
        tenantId: cause.tenantId,
        userId: cause.userId,
      },
      handle: (ctx) => task.run(ctx, scope),
      own: task.own,
      answerOf: () => done,
      committedAnswer: () => done,
    });
    switch (ended.kind) {
      case "replayed":
        return { kind: "skipped" };
      case "running":
        return {
          kind: "handed-back",
          afterMs: Math.max(0, ended.untilMs + skewMs - runtime.clock.now()),
        };
      // Another run has taken over the claim. The redelivery shows whether that run succeeded.
      case "redeliver":
        return { kind: "handed-back", afterMs: 0 };
      default:
        return { kind: "processed" };
    }
  } catch (error) {
    const { level, data } = describeError(error, {
      requestId: "",
      environment: runtime.environment,
    }).log;
    log[level](`${logPrefix}.failed`, data);
    return { kind: "failed", error };
  }
}
