import { runWithStore } from "../context/ambient.ts";
import type { PipelineContext } from "../context/pipeline-context.ts";
import { describeError } from "../errors/describe.ts";
import { isPermanent, PermanentError } from "../errors/permanent-error.ts";
import type { Cause } from "../events/cause.ts";
import { checkPayload } from "../events/check-payload.ts";
import type { SharedEvent } from "../events/envelope.ts";
import type { JobMessage } from "../events/job-message.ts";
import type { User } from "../identity/user.ts";
import type { Logger } from "../log/logger.ts";
import type { Answer } from "../once/answer.ts";
import { skewMs } from "../once/claim.ts";
import { claimKey, keyText } from "../once/claim-key.ts";
import type { ClaimKey } from "../once/claim-store.ts";
import type { Claim, Taken } from "../once/claims.ts";
import { createRunCommit } from "../once/run-commit.ts";
import type { Adapters } from "./adapters.ts";
import { createContext } from "./context.ts";
import { createEffects } from "./effects.ts";
import type { Runtime } from "./runtime.ts";

/** What became of the work that a message asks for. */
export type Consumed =
  /** It is done. */
  | { readonly kind: "processed" }
  /** It was done before. */
  | { readonly kind: "skipped" }
  /** Somebody else is at it, for so long at the most. */
  | { readonly kind: "handed-back"; readonly afterMs: number }
  /** It failed; the error is logged. */
  | { readonly kind: "failed"; readonly error: unknown };

/** One piece of work, claimed by itself: a consumer of an event, or a job. */
interface Unit {
  readonly key: ClaimKey;
  /** The full name of the handler. */
  readonly handler: string;
  readonly cause: Cause;
  /** The ID of the event or job: what follows from it is caused by it. */
  readonly id: string;
  /** What its lines carry. */
  readonly logFields: Readonly<Record<string, string>>;
  /** What its lines begin with: `event` or `job`. */
  readonly what: "event" | "job";
  /** When the process will be gone, in milliseconds since the epoch. */
  readonly deadlineMs: number | undefined;
  readonly run: (ctx: PipelineContext) => unknown;
}

/** How a message is consumed. */
export interface ConsumeOptions {
  readonly deadlineMs?: number | undefined;
}

/**
 * Lets every consumer of an event handle it, each once (specification 6.4): one that is done already skips it, whatever the
 * others do.
 *
 * @returns the worst of what became of it: failed, handed back, failed for ever, processed, skipped.
 * @throws PermanentError for an event whose payload does not fit, Error for one that is not known here.
 */
export async function consumeEvent(
  runtime: Runtime,
  adapters: Adapters,
  event: SharedEvent,
  { deadlineMs }: ConsumeOptions = {},
): Promise<Consumed> {
  const { registry } = runtime.server;
  const { type, eventId, tenantId, causedBy, origRequestId } = event;
  const declaration = registry.events.get(type);
  // Not permanent: in a deployment by turns the next process may know it.
  if (declaration === undefined) throw new Error(`the event ${type} is declared by no feature of this server`);
  const refuse = (problems: string) => new PermanentError(`the payload of ${type} does not fit its schema (${problems})`);
  const payload = await checkPayload(declaration.schema, event.payload, refuse);
  const consumers = [...registry.consumers.values()].filter((consumer) => consumer.type === type);
  const outcomes = await Promise.all(
    consumers.map(({ name, run }) =>
      runOnce(runtime, adapters, {
        key: claimKey(["event", name, tenantKey(tenantId)], eventId),
        handler: name,
        cause: event,
        id: eventId,
        logFields: { origRequestId, eventId, causedBy },
        what: "event",
        deadlineMs,
        run: (ctx) => run(ctx, { ...event, payload }),
      }),
    ),
  );
  return worst(outcomes);
}

/**
 * Runs a job, unless it is done (specification 6.5).
 *
 * @throws PermanentError for one whose payload does not fit, Error for one that is not known here.
 */
export async function runJob(
  runtime: Runtime,
  adapters: Adapters,
  job: JobMessage,
  { deadlineMs }: ConsumeOptions = {},
): Promise<Consumed> {
  const { name, jobId, tenantId, causedBy, origRequestId } = job;
  const declaration = name === runtime.deliveryJob.name ? runtime.deliveryJob : runtime.server.registry.jobs.get(name);
  if (declaration === undefined) throw new Error(`the job ${name} is declared by no feature of this server`);
  const refuse = (problems: string) => new PermanentError(`the payload of ${name} does not fit its schema (${problems})`);
  const payload = await checkPayload(declaration.input, job.payload, refuse);
  return runOnce(runtime, adapters, {
    key: claimKey(["job", name, tenantKey(tenantId)], jobId),
    handler: name,
    cause: job,
    id: jobId,
    logFields: { origRequestId, jobId, causedBy },
    what: "job",
    deadlineMs,
    run: (ctx) => declaration.run(ctx, payload, job),
  });
}

function tenantKey(tenantId: string | undefined): string {
  return tenantId === undefined ? "-" : `=${tenantId}`;
}

const severity = ["skipped", "processed", "handed-back", "failed"] as const;

function worst(outcomes: readonly Consumed[]): Consumed {
  return outcomes.reduce<Consumed>((one, other) => (rank(other) > rank(one) ? other : one), { kind: "skipped" });
}

/** What may succeed the next time counts more than what never will: the message has to come again for it. */
function rank(outcome: Consumed): number {
  const isLost = outcome.kind === "failed" && isPermanent(outcome.error);
  return isLost ? severity.indexOf("processed") + 0.5 : severity.indexOf(outcome.kind);
}

/** What an answer is of which nobody asks for more than that it is there. */
const done: Answer = Object.freeze({ status: 204, headers: {}, cookies: [], body: undefined });

/** Runs a unit in its scope. In one process a duplicate waits for the first, and is then skipped. */
async function runOnce(runtime: Runtime, adapters: Adapters, unit: Unit): Promise<Consumed> {
  const { tenantId, userId, origRequestId } = unit.cause;
  const user: User = Object.freeze({ id: userId, tenantId, roles: Object.freeze([]) });
  const log = runtime.log.child({ requestId: origRequestId, tenantId, userId, handler: unit.handler, ...unit.logFields });
  const context = Object.freeze({ requestId: origRequestId, tenantId, userId, signal: undefined, trace: undefined });
  const running = keyText(unit.key);
  // Whatever comes of the first, the second sees for itself.
  for (let other = runtime.consuming.get(running); other !== undefined; other = runtime.consuming.get(running)) {
    await Promise.allSettled([other.work]);
  }
  const work = runWithStore({ context, tableName: runtime.tableName }, () => claimed(runtime, adapters, unit, user, log));
  runtime.consuming.set(running, { work, handler: unit.handler, ids: unit.logFields });
  try {
    return await work;
  } finally {
    runtime.consuming.delete(running);
  }
}

async function claimed(runtime: Runtime, adapters: Adapters, unit: Unit, user: User, log: Logger): Promise<Consumed> {
  const { key, what, deadlineMs } = unit;
  let taken: Taken;
  try {
    taken = await runtime.claims.take(key, { waitMs: 0, stop: [], deadlineMs });
  } catch (error) {
    return failed(runtime, unit, log, error); // not thrown: other consumers of the event are at work
  }
  if (taken.kind === "done") {
    log.debug(`${what}.skipped`);
    return { kind: "skipped" };
  }
  if (taken.kind !== "taken") {
    // Safe: without a fingerprint nothing is for another work, so a twin is running.
    const { untilMs } = taken as Extract<typeof taken, { kind: "running" }>;
    const afterMs = Math.max(0, untilMs + skewMs - runtime.clock.now());
    log.debug(`${what}.handed_back`, { afterMs });
    return { kind: "handed-back", afterMs };
  }
  return perform(runtime, adapters, unit, user, { log, claim: taken.claim });
}

async function perform(
  runtime: Runtime,
  adapters: Adapters,
  unit: Unit,
  user: User,
  { log, claim }: { readonly log: Logger; readonly claim: Claim },
): Promise<Consumed> {
  const { handler, cause, id, logFields, what, key } = unit;
  const { origRequestId } = cause;
  const startMs = runtime.clock.now();
  const run = createRunCommit({
    store: adapters.claims,
    clock: runtime.clock,
    pause: runtime.once.pause,
    claim,
    cipher: undefined,
    kept: (answer) => answer,
    signal: undefined,
  });
  const following = { causedBy: id, origRequestId, tenantId: user.tenantId, userId: user.id };
  const effects = createEffects(runtime, adapters, following, { log }, { commit: run.commit, seed: () => keyText(key) });
  const ctx = createContext(runtime, adapters, {
    requestId: origRequestId,
    user,
    handler,
    logFields,
    effects,
    commit: (items) => effects.commit(items, done),
  });
  const processed = (): Consumed => {
    log.info(`${what}.processed`, { durationMs: Math.max(0, runtime.clock.now() - startMs) });
    return { kind: "processed" };
  };
  try {
    await unit.run(ctx);
    await effects.settle(() => done);
  } catch (error) {
    await run.settled();
    if (run.committed() !== undefined) {
      claim.abandon();
      log.error(`${what}.threw_after_commit`, described(runtime, error).data);
      return processed();
    }
    if (run.isUncertain() || claim.isLost()) {
      // Nobody knows whether it was written, or somebody else is at it: the claim says so, once its lease is over.
      claim.abandon();
    } else {
      await release(claim, log);
    }
    return failed(runtime, unit, log, error);
  }
  await run.settled();
  if (run.committed() !== undefined) {
    claim.abandon();
    return processed();
  }
  try {
    if (await claim.complete(undefined)) return processed();
  } catch (error) {
    claim.abandon();
    return failed(runtime, unit, log, new Error("what was done could not be noted; it may be done again", { cause: error }));
  }
  // Another has taken over while it ran: whether that one came to its end shows the next time.
  log.warn(`${what}.fenced`);
  return { kind: "handed-back", afterMs: 0 };
}

function failed(runtime: Runtime, { what }: Unit, log: Logger, error: unknown): Consumed {
  const { level, data } = described(runtime, error);
  log[level](`${what}.failed`, data);
  return { kind: "failed", error };
}

function described(runtime: Runtime, error: unknown) {
  return describeError(error, { requestId: "", environment: runtime.environment }).log;
}

async function release(claim: Claim, log: Logger): Promise<void> {
  try {
    await claim.release();
  } catch (error) {
    claim.abandon(); // its lease ends by itself
    log.warn("once.release_failed", { message: String(error) });
  }
}
