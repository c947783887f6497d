import { errorLog } from "../../base/errors/describe.ts";
import { isTypedError } from "../../base/errors/errors.ts";
import { anonymous, type User } from "../../base/identity/access.ts";
import type { SpanContext } from "../../base/request/trace.ts";
import { MustWaitError } from "../../parts/limits/must-wait.ts";
import type { Cause } from "../../parts/messages/envelope.ts";
import { claimKey, keyText, messageRetentionMs, skewMs } from "../../parts/once/claim.ts";
import type { TransactionItem } from "../../parts/once/claim-store.ts";
import type { OnceClaim } from "../../parts/once/claims.ts";
import { run } from "../ctx/run.ts";
import type { Concurrency } from "../handlers/concurrency.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { TaskEnd } from "../observe/run-observer.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { type RequestScope, runInMessageScope } from "../runtime/scope.ts";
import type { TaskOutcome } from "../schedules/schedules.ts";

/** One consumer of an event, one job, or one run of a schedule. */
export interface Task extends Pick<TaskEnd, "attempt" | "sinceMs" | "event" | "channel"> {
  /** Arguments of `claimKey`. */
  readonly claimed: Parameters<typeof claimKey>;
  readonly handler: string;
  readonly cause: Cause;
  readonly isSystem: boolean;
  /** Of the event, job or scheduled run: the `causedBy` of the task's events and jobs. */
  readonly id: string;
  readonly logFields: Readonly<Record<string, string>>;
  readonly logPrefix: "event" | "job" | "schedule";
  readonly kind: Exclude<TaskEnd["kind"], "run">;
  /** Returns what only the run knows about itself. */
  readonly facts?: () => Pick<TaskEnd, "attempt" | "sinceMs">;
  /** Time when the process ends, in milliseconds since the epoch. */
  readonly deadlineMs?: number | undefined;
  /** Span of the sender. Default: the task starts a new trace. */
  readonly parent?: SpanContext | undefined;
  /** Time in which the queue redelivers the message, in milliseconds. Default: 0. */
  readonly redeliveryMs?: number | undefined;
  /** Whether other work may reuse the key later. Default `false`. */
  readonly hasReusableKey?: boolean | undefined;
  /** Limits of the handler's runs. Default: none. */
  readonly concurrency?: Concurrency | undefined;
  readonly run: (ctx: PipelineContext, scope: RequestScope) => unknown;
  /** See `Work.own`. */
  readonly own?: (() => readonly TransactionItem[]) | undefined;
}

/** Runs a task. A duplicate in the same process waits for the first run. Never throws. */
export async function consumeOnce(
  runtime: Runtime,
  adapters: Adapters,
  task: Task,
): Promise<TaskOutcome> {
  const { handler, cause, isSystem, deadlineMs, logFields, parent, redeliveryMs = 0 } = task;
  const { tenantId, userId, origRequestId: requestId } = cause;
  const user: User = Object.freeze({ ...anonymous, id: userId, tenantId });
  const claim: OnceClaim = {
    kind: "message",
    key: claimKey(...task.claimed),
    hasReusableKey: task.hasReusableKey,
    deadlineMs,
    retentionMs: messageRetentionMs(redeliveryMs, task.hasReusableKey),
    replayedHeaders: [],
  };
  const running = keyText(claim.key);
  // Ignores how the other run ends, because its claim records that.
  let other = runtime.inFlight.get(running);
  while (other !== undefined) {
    await Promise.allSettled([other.work]);
    other = runtime.inFlight.get(running);
  }
  const subject = { kind: task.kind, about: task.event ?? task.channel ?? handler, id: task.id };
  const facts = { requestId, user, handler, deadlineMs, isSystem, logFields, parent, subject };
  const work = runInMessageScope(runtime, facts, (scope) => observed(scope, adapters, task, claim));
  runtime.inFlight.set(running, { work, handler, ids: logFields });
  try {
    return await work;
  } finally {
    runtime.inFlight.delete(running);
  }
}

async function observed(
  scope: RequestScope,
  adapters: Adapters,
  task: Task,
  claim: OnceClaim,
): Promise<TaskOutcome> {
  const consumed = await claimed(scope, adapters, task, claim);
  const { observer } = scope.runtime;
  if (observer === undefined) return consumed;
  const { afterMs, error } = consumed as { readonly afterMs?: number; readonly error?: unknown }; // safe: both members are optional here
  const outcome = consumed.kind === "skipped" ? "processed" : consumed.kind;
  const { kind, event, channel, attempt, sinceMs } = task;
  const facts = { event, channel, attempt, sinceMs, ...task.facts?.() };
  observer.ended(scope, { kind, outcome, ...facts, afterMs, error });
  return consumed;
}

/** Never throws, so that other consumers go on. */
async function claimed(
  scope: RequestScope,
  adapters: Adapters,
  task: Task,
  claim: OnceClaim,
): Promise<TaskOutcome> {
  const { logPrefix, id, concurrency } = task;
  const { origRequestId, tenantId, userId } = task.cause;
  const slots =
    concurrency &&
    (await import("./task-slots.ts")).slotsOf(adapters, task.handler, tenantId, concurrency);
  try {
    await slots?.refuseIfFull();
    const ended = await run(scope, adapters, {
      logPrefix,
      claim,
      nowMs: scope.startMs,
      cause: { causedBy: id, origRequestId, tenantId, userId },
      handle: async (ctx, _input, run) => {
        await slots?.enter(ctx, run);
        return task.run(ctx, scope);
      },
      own: task.own,
    });
    switch (ended.kind) {
      case "replayed":
        return { kind: "skipped" };
      case "running":
        return {
          kind: "handed-back",
          afterMs: Math.max(0, ended.untilMs + skewMs - scope.runtime.clock.now()),
        };
      // The redelivery shows whether the run that has taken over succeeded.
      case "redeliver":
        return { kind: "handed-back", afterMs: 0 };
      default:
        return { kind: "processed" };
    }
  } catch (error) {
    const waitMs = task.kind === "schedule" ? undefined : waitOf(error);
    if (waitMs !== undefined) {
      scope.log.info(`${logPrefix}.limited`, { afterMs: waitMs });
      return { kind: "handed-back", afterMs: waitMs, mustWait: true };
    }
    if (error instanceof MustWaitError) {
      scope.log.debug(`${logPrefix}.waiting`, { limit: error.limit });
      return { kind: "handed-back", afterMs: 0, mustWait: true };
    }
    const { level, data } = errorLog(error);
    scope.log[level](`${logPrefix}.failed`, data);
    return { kind: "failed", error };
  } finally {
    // Only now, because the run holds its slots until its claim has ended.
    await slots?.leave();
  }
}

/** Returns the time until a rate limit's window ends, in milliseconds, for the error of a refusal. */
function waitOf(error: unknown): number | undefined {
  if (!isTypedError(error) || error.code !== "too_many_requests") return undefined;
  const seconds = Number(error.headers["retry-after"]);
  return seconds > 0 ? Math.min(seconds * 1_000, longestWaitMs) : undefined;
}

/** SQS hides a message of an ordered queue for at most twelve hours from its receipt. */
const longestWaitMs = 11 * 3_600_000;
