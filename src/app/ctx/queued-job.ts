import { asksSystem } from "../../parts/messages/envelope.ts";
import { type JobMessage, jobHash, jobText } from "../../parts/messages/job-message.ts";
import type { JobDeclaration } from "../handlers/message-handlers.ts";
import { usesMessages } from "../registry/registry.ts";
import type { EffectRun } from "./effect-run.ts";

type QueuedJob = Pick<JobDeclaration, "dedupKey" | "dedupScope" | "order">;

export async function queuedJob(
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

/**
 * Requires a string or number, because all objects would convert to the same string, as would
 * missing values.
 */
function keyOf(option: string, job: string, key: unknown): string {
  if (typeof key === "string" || typeof key === "number") return String(key);
  throw new TypeError(
    `${option} of ${job} gave ${key === null ? "null" : typeof key}; let it give a text`,
  );
}

const noQueue =
  "this server has no queue; declare an event, a job or a channel in one of its features, or set delivery.webhook in buildServer";
