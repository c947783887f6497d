import { AccessDeniedError } from "../../base/errors/errors.ts";
import { assertKnownOptions } from "../../base/errors/option-table.ts";
import { quoted } from "../../base/errors/quoted.ts";
import { isIdentifier } from "../../base/identity/access.ts";
import { asksSystem, type Cause, checkPayload } from "../../parts/messages/envelope.ts";
import { type JobMessage, jobHash, jobPayload, jobText } from "../../parts/messages/job-message.ts";
import { isMarked, sendJob } from "../../parts/messages/job-route.ts";
import type { EnqueueOptions } from "../handlers/effect-options.ts";
import type { JobDeclaration } from "../handlers/message-handlers.ts";
import { usesMessages } from "../registry/registry.ts";
import type { EffectCaller } from "./effect-ledger.ts";
import {
  deriveId,
  type EffectCall,
  type EffectRun,
  effectCall,
  type HeldEffect,
  idParts,
  logSent,
  misfit,
  take,
} from "./effect-run.ts";

/** Enqueues a job with the commit of its run, or immediately (`ctx.enqueue`). */
export async function enqueue(
  run: EffectRun,
  caller: EffectCaller,
  name: string,
  payload: unknown,
  options: EnqueueOptions | undefined,
): Promise<{ readonly jobId: string }> {
  const declaration = run.scope.runtime.server.registry.jobs.get(name);
  if (declaration === undefined)
    throw new Error(
      `ctx.enqueue: no feature of this server declares the job ${String(name)}; declare it with r.job`,
    );
  assertKnownOptions("ctx.enqueue", options, enqueueOptions);
  const cause = causeFor(run, options?.tenantId);
  const refuse = (problems: string) => misfit("ctx.enqueue", `the payload of ${name}`, problems);
  const call = effectCall(run, caller, ["ctx.enqueue", "enqueue"], options);
  if (options?.delaySeconds === undefined && options?.at === undefined) {
    const jobId = deriveId(call, "job", name);
    await checkPayload(declaration.input, payload, refuse);
    const job = { jobId, name, payload: jobPayload(name, payload), ...cause };
    await takeJob(call, { kind: "job", name }, declaration, job);
    return { jobId };
  }
  const counted = idParts(call, "later", name);
  const { dueId, dueMsOf, dueRow } = await import("../../parts/messages/due-jobs.ts");
  const dueMs = dueMsOf(options, run.scope.runtime.clock.now());
  const jobId = dueId(dueMs, ...counted);
  await checkPayload(declaration.input, payload, refuse);
  const job = { jobId, name, payload: jobPayload(name, payload), ...cause };
  // With a separate key, a job that enqueues itself is not dropped as a duplicate.
  const queued = await queuedJob(run, { ...declaration, dedupKey: () => jobId }, job);
  const row = dueRow({ jobId, name, tenantId: job.tenantId, ...queued });
  await take(call, { kind: "job", name, row, dueMs });
  return { jobId };
}

type QueuedJob = Pick<JobDeclaration, "dedupKey" | "dedupScope" | "order">;

/**
 * Takes a job that is due now. One that happens immediately costs only the call of the queue,
 * unless equal jobs merge by a mark: then it is stored first, so that it cannot be lost between the
 * mark and the call.
 */
export async function takeJob(
  call: EffectCall,
  effect: Pick<HeldEffect, "kind" | "name">,
  declaration: QueuedJob,
  job: JobMessage,
): Promise<void> {
  const { run, attempt } = call;
  const { jobId, name, tenantId } = job;
  const queued = { name, tenantId, ...(await queuedJob(run, declaration, job)) };
  if (attempt === undefined) {
    const queues = await run.adapters.messaging.open();
    if (!isMarked(queues.fairMode, queued)) {
      await sendJob(queues, queued);
      return logSent(run.log, effect, jobId);
    }
  }
  const { queuedRow } = await import("../../parts/messages/due-jobs.ts");
  const nowMs = run.scope.runtime.clock.now();
  const row = queuedRow(nowMs, run.ledger.size, { jobId, ...queued });
  await take(call, { ...effect, row });
}

async function queuedJob(
  run: EffectRun,
  { dedupKey, dedupScope, order }: QueuedJob,
  job: JobMessage,
) {
  if (!usesMessages(run.scope.runtime.server.registry)) throw new Error(noQueue);
  const { name, tenantId, userId, payload } = job;
  const identity = { name, tenantId, userId: dedupScope === "user" ? userId : undefined };
  const known =
    dedupKey === undefined
      ? ["payload", payload]
      : ["key", keyOf("dedupKey", name, dedupKey(payload))];
  // A job from an anonymous request may have fewer rights than an equal job from the system, so the
  // two are not duplicates.
  const deduplicationId = jobHash(identity, asksSystem(job) ? [...known, "system"] : known);
  const group =
    order === undefined
      ? deduplicationId
      : jobHash(identity, ["order", keyOf("order", name, order(payload))]);
  const proof = await (await run.scope.runtime.messages.open()).signJob(job);
  run.scope.spans?.named(job.jobId);
  const text = jobText(job, { proof, trace: run.scope.trace.headers() });
  return { text, group, deduplicationId };
}

/** All objects would convert to the same string, as would missing values. */
function keyOf(option: string, job: string, key: unknown): string {
  if (typeof key === "string" || typeof key === "number") return String(key);
  throw new TypeError(
    `${option} of ${job} returned ${key === null ? "null" : typeof key}; return a string`,
  );
}

const noQueue =
  "this server has no queue; declare an event, a job or a channel in one of its features, or set delivery.webhook in buildServer";

/** Takes back a job that is not due yet (`ctx.cancelJob`). */
export async function cancelJob(run: EffectRun, jobId: string): Promise<boolean> {
  const { duePlace } = await import("../../parts/messages/due-jobs.ts");
  const place = duePlace(jobId);
  if (place === undefined) return false;
  const isTakenBack = await (await run.adapters.dueJobs.open()).takeBack(place, run.cause.tenantId);
  if (isTakenBack) run.log.info("job.canceled", { canceledId: jobId });
  return isTakenBack;
}

/** Only a system run may set the tenant of a job. */
function causeFor(run: EffectRun, tenantId: string | undefined): Cause {
  if (tenantId === undefined) return run.cause;
  if (!run.scope.isSystem)
    throw new AccessDeniedError("ctx.enqueue for a tenant takes a run of the system");
  if (!isIdentifier(tenantId))
    throw new TypeError(`ctx.enqueue: tenantId is ${quoted(tenantId)}; use a string`);
  return { ...run.cause, tenantId };
}

const enqueueOptions: readonly string[] = [
  "delaySeconds",
  "at",
  "tenantId",
  "afterCommit",
] satisfies (keyof EnqueueOptions)[];
