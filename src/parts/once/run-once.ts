import { describeError } from "../../base/errors/describe.ts";
import { FrameworkError, isTypedError } from "../../base/errors/errors.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Clock } from "../../base/process/clock.ts";
import { loadAnswer, replayOf, saysNotDone, storeAnswer, type WriteAnswer } from "./answer.ts";
import { type CompletedClaim, expiry, extensionSlackMs } from "./claim.ts";
import { countEnd, countTaken } from "./claim-counts.ts";
import type { ClaimStore } from "./claim-store.ts";
import type { Claim, Claims, Taken } from "./claims.ts";
import type { HeldRun, OnceClaim, Run, RunOutcome, RunParts } from "./once-run.ts";
import { createRunCommit, type RunCommit, type RunCommitOptions } from "./run-commit.ts";
import { type ClaimEnd, type CommitEnd, settlementOf, type WorkEnd } from "./settlement.ts";

/** What all runs of a server share. */
export interface OnceParts {
  readonly store: ClaimStore;
  readonly claims: Claims;
  readonly clock: Clock;
  readonly pause: (attempt: number) => Promise<void>;
  /** How long a write waits for a duplicate in flight, in milliseconds; a message is redelivered instead. */
  readonly waitMs: number;
  /** Aborts when the process drains: nothing waits for a duplicate then. */
  readonly draining: AbortSignal;
  /** Counts what becomes of claims; `undefined` where nobody does. */
  readonly metrics: Metrics | undefined;
  /** Called with each stored answer of a write; `expiresAt` is in seconds since the epoch. */
  remember(run: Pick<Run<never>, "claim" | "text">, answer: WriteAnswer, expiresAt: number): void;
}

type WorkOutcome<Result> =
  | { readonly result: Result; readonly answer?: WriteAnswer }
  /** `isRefused`: the work is done, but its answer cannot be sent. */
  | { readonly error: unknown; readonly isRefused?: boolean };

/**
 * Runs the work under its claim, or replays an earlier run.
 *
 * @throws whatever the work throws; FrameworkError `request_in_progress` if the duplicate of a write runs longer
 * than `waitMs`, `idempotency_key_reused` for other work under the key; Error if a message's work is done but could not be recorded;
 * whatever the store throws where the claim cannot be taken.
 */
export async function runOnce<Result>(
  parts: OnceParts,
  run: Run<Result>,
): Promise<RunOutcome<Result>> {
  if (run.claim === undefined) return new RunInProgress(parts, run, undefined).ended();
  const taken = await take(parts, run, run.claim);
  if (taken.kind === "running") {
    if (run.claim.kind === "write") throw inProgress();
    return taken;
  }
  if (taken.kind === "done") return replay(parts, run, run.claim, taken);
  return new RunInProgress(parts, run, taken.claim).ended();
}

async function take<Result>(
  parts: OnceParts,
  { signal, log, logPrefix }: Run<Result>,
  claim: OnceClaim,
): Promise<Exclude<Taken, { kind: "other" }>> {
  const { kind, key, fingerprint, comparesFingerprint = false, deadlineMs, retentionMs } = claim;
  const hasGeneration = claim.hasReusableKey ?? kind === "write";
  const waitMs = kind === "write" ? parts.waitMs : 0;
  const stop = signal === undefined ? [parts.draining] : [signal, parts.draining];
  const options = {
    fingerprint,
    comparesFingerprint,
    deadlineMs,
    retentionMs,
    waitMs,
    stop,
    hasGeneration,
  };
  const taken = await parts.claims.take(key, options);
  if (taken.kind === "other") throw keyReused();
  if (parts.metrics !== undefined) countTaken(parts.metrics, kind, taken);
  if (kind === "write" && taken.kind !== "done") {
    if (taken.kind === "taken") log.debug(`${logPrefix}.taken`, { waited: taken.hasWaited });
    else
      log.debug(`${logPrefix}.conflicted`, { leaseUntil: new Date(taken.untilMs).toISOString() });
  }
  return taken;
}

/** The same key was sent with another request. */
export function keyReused(): FrameworkError {
  return new FrameworkError(
    "idempotency_key_reused",
    "The Idempotency-Key was used for another request; send a new one",
  );
}

/** A duplicate is running. */
export function inProgress(): FrameworkError {
  return new FrameworkError(
    "request_in_progress",
    "The same request is being processed; try again later",
    {
      headers: { "retry-after": "1" },
    },
  );
}

async function replay<Result>(
  { store, clock, remember }: OnceParts,
  run: Run<Result>,
  claim: OnceClaim,
  { record, hasWaited }: { readonly record: CompletedClaim; readonly hasWaited: boolean },
): Promise<Extract<RunOutcome<Result>, { kind: "replayed" }>> {
  if (claim.kind === "message") {
    await extend(store, claim, record, clock.now());
    return { kind: "replayed", answer: undefined };
  }
  const answer = await loadAnswer(store, claim.key, record, claim.cipher);
  run.log.debug(`${run.logPrefix}.replayed`, { waited: hasWaited });
  remember(run, answer, record.expiresAt);
  return { kind: "replayed", answer };
}

/** A message that comes again may come once more: its claim is retained from now on, for as long as after the first time. */
async function extend(
  store: ClaimStore,
  claim: OnceClaim,
  record: CompletedClaim,
  nowMs: number,
): Promise<void> {
  const { key, retentionMs, hasReusableKey = false } = claim;
  // Or else a key that is used every hour would be done once and never again.
  if (hasReusableKey) return;
  const expiresAt = expiry(nowMs, retentionMs);
  // Most duplicates come at once; these cost no write.
  if ((expiresAt - record.expiresAt) * 1000 <= extensionSlackMs) return;
  // The claim lasts for its own time in any case.
  await store.extend(key, record.owner, expiresAt).catch(() => undefined);
}

/** A run in progress: its work, its commit and its claim. */
class RunInProgress<Result> implements RunParts {
  readonly #parts: OnceParts;
  readonly #run: Run<Result>;
  readonly signal: AbortSignal | undefined;
  /** A new one after the run has retaken its claim. */
  #claim: Claim | undefined;
  #commit: RunCommit | undefined = undefined;
  #apart: RunCommit | undefined = undefined;
  /** The part of its answer that is stored and replayed. */
  #stored: WriteAnswer | undefined = undefined;
  #seed: string | undefined = undefined;

  constructor(parts: OnceParts, run: Run<Result>, claim: Claim | undefined) {
    this.#parts = parts;
    this.#run = run;
    this.#claim = claim;
    this.signal = run.signal;
  }

  /** Made for the first commit: most runs have none. */
  readonly commit: RunCommit["commit"] = (...given) => {
    const { claim: wanted } = this.#run;
    // Nobody asks for the answer of a message.
    const toStored =
      wanted?.kind === "write" ? (answer: WriteAnswer) => storedAnswer(wanted, answer) : undefined;
    this.#commit ??= this.#createCommit({ completes: true, cipher: wanted?.cipher, toStored });
    return this.#commit.commit(...given);
  };

  commitApart(...[items, own]: Parameters<RunParts["commitApart"]>): Promise<void> {
    this.#apart = this.#createCommit({ completes: false, cipher: undefined, toStored: undefined });
    return this.#apart.commit(items, noAnswer, own);
  }

  commitEnd(): CommitEnd {
    if (this.#commit?.committed() !== undefined) return "committed";
    return this.#commit?.isUncertain() === true || this.#apart?.isUncertain() === true
      ? "unknown"
      : "none";
  }

  #createCommit(own: Pick<RunCommitOptions, "completes" | "cipher" | "toStored">): RunCommit {
    const { store, clock, pause } = this.#parts;
    const { signal, tenantId } = this.#run;
    return createRunCommit({ store, clock, pause, claim: this.#claim, tenantId, signal, ...own });
  }

  held(): HeldRun | undefined {
    const { claim: wanted } = this.#run;
    return this.#claim === undefined || wanted === undefined
      ? undefined
      : { claim: this.#claim, wanted };
  }

  seed(): string {
    this.#seed ??= this.#claim === undefined ? crypto.randomUUID() : this.#claim.seed();
    return this.#seed;
  }

  async ended(): Promise<RunOutcome<Result>> {
    const outcome = await this.#work();
    await this.#commit?.settled();
    return this.#settled(outcome);
  }

  async #work(): Promise<WorkOutcome<Result>> {
    try {
      return { result: await this.#run.work(this) };
    } catch (error) {
      return { error };
    }
  }

  /** Follows the table in `settlement.ts` until there is an outcome. */
  async #settled(worked: WorkOutcome<Result>): Promise<RunOutcome<Result>> {
    const { claim: wanted, logPrefix, log, answerOf } = this.#run;
    const { metrics } = this.#parts;
    const committed = this.#commit?.committed();
    const commit =
      committed !== undefined
        ? "committed"
        : this.#commit?.isUncertain() === true
          ? "unknown"
          : "none";
    const work = commit === "none" ? this.#answered(worked) : worked;
    const end = this.#endOf(work);
    let step: Step = {
      claim: this.#claim === undefined ? "unclaimed" : this.#claim.isLost() ? "lost" : "ours",
    };
    for (;;) {
      const { record, outcome, line } = settlementOf(
        wanted?.kind ?? "write",
        end,
        commit,
        step.claim,
      );
      if (line !== undefined)
        log[line.level](`${logPrefix}.${line.message}`, errorData(step.failure ?? errorOf(work)));
      if (metrics !== undefined && wanted !== undefined)
        countEnd(metrics, wanted.kind, {
          work: end,
          commit,
          claim: step.claim,
          isLast: outcome !== "",
        });
      switch (record) {
        case "keep":
          this.#claim?.abandon();
          break;
        case "release":
          await this.#release();
          break;
        case "complete":
          step = await this.#complete();
          continue;
        case "retake":
          step = await this.#retake();
          continue;
      }
      // Safe, here and below: the table names only an outcome that exists.
      switch (outcome) {
        case "own":
          if ("error" in work) throw work.error;
          return {
            kind: "done",
            result: work.result,
            answer: wanted?.kind === "write" ? answerOf(work.result) : undefined,
            isNoted:
              commit !== "unknown" && step.claim !== "unrecorded" && step.claim !== "unknown",
          };
        case "committed": {
          const { answer, stored, expiresAt } = committed as NonNullable<typeof committed>;
          if (stored !== undefined) this.#parts.remember(this.#run, stored, expiresAt);
          return { kind: "committed", answer };
        }
        case "theirs":
          return replay(
            this.#parts,
            this.#run,
            wanted as OnceClaim,
            step.theirs as NonNullable<Step["theirs"]>,
          );
        case "redeliver":
          return { kind: "redeliver" };
        case "unrecorded":
          throw new Error("the work is done, but could not be recorded; it may run again", {
            cause: step.failure,
          });
      }
    }
  }

  /** Adds the answer, or the error of one that is too large for the transport. */
  #answered(outcome: WorkOutcome<Result>): WorkOutcome<Result> {
    const { claim, answerOf } = this.#run;
    if ("error" in outcome || claim?.kind !== "write") return outcome;
    const { result } = outcome;
    const answer = answerOf(result);
    if (isRefusal(answer)) return { result, answer };
    try {
      this.#stored = storedAnswer(claim, answer);
      return { result, answer };
    } catch (error) {
      return { error, isRefused: true };
    }
  }

  #endOf(outcome: WorkOutcome<Result>): WorkEnd {
    const { signal } = this;
    if (!("error" in outcome))
      return outcome.answer !== undefined && isRefusal(outcome.answer) ? "refused" : "answered";
    if (outcome.isRefused === true) return "refused";
    if (signal?.aborted !== true) return "threw";
    return isTypedError(signal.reason) && signal.reason.code === "timeout"
      ? "timed out"
      : "stopped";
  }

  async #complete(): Promise<Step> {
    const { store, clock, remember } = this.#parts;
    // Safe: what is completed is claimed.
    const [claim, wanted] = [this.#claim as Claim, this.#run.claim as OnceClaim];
    const answer = this.#stored;
    try {
      if (answer === undefined)
        return { claim: (await claim.complete(undefined)) ? "completed" : "fenced" };
      const expiresAt = expiry(clock.now(), claim.retentionMs());
      const { key, owner } = claim;
      const result = await storeAnswer(store, {
        answer,
        key,
        owner,
        expiresAt,
        cipher: wanted.cipher,
      });
      if (!(await claim.complete(result))) return { claim: "fenced" };
      remember(this.#run, answer, expiresAt);
      return { claim: "completed" };
    } catch (failure) {
      return { claim: "unrecorded", failure };
    }
  }

  /** Another run has taken over: its answer counts, so that all callers get the same. */
  async #retake(): Promise<Step> {
    try {
      const taken = await take(this.#parts, this.#run, this.#run.claim as OnceClaim); // safe: it was taken before
      if (taken.kind === "done") return { claim: "theirs", theirs: taken };
      if (taken.kind === "running") return { claim: "unknown", failure: inProgress() };
      // The other run failed and released its claim: our result counts.
      this.#claim = taken.claim;
      return { claim: "ours" };
    } catch (failure) {
      return { claim: "unknown", failure };
    }
  }

  async #release(): Promise<void> {
    const claim = this.#claim as Claim; // safe: as above
    try {
      await claim.release();
    } catch (error) {
      // The caller needs the run's outcome, not this error; the lease runs out by itself.
      claim.abandon();
      this.#run.log.warn("once.release_failed", errorData(error));
    }
  }
}

const noAnswer: WriteAnswer = Object.freeze({
  status: 204,
  headers: {},
  cookies: [],
  body: undefined,
});

/** Where a run stands with its claim. */
interface Step {
  readonly claim: ClaimEnd;
  /** Why it got no further. */
  readonly failure?: unknown;
  readonly theirs?: Extract<Taken, { kind: "done" }>;
}

/** Whether an answer is never replayed: nothing was done, or it sets cookies. */
function isRefusal(answer: WriteAnswer): boolean {
  return saysNotDone(answer) || answer.cookies.length > 0;
}

/** The part of an answer that is stored and replayed. @throws if it is too large for the transport. */
function storedAnswer(claim: OnceClaim, answer: WriteAnswer): WriteAnswer {
  const stored = replayOf(answer, claim.replayedHeaders);
  claim.assertFits?.(answer);
  return stored;
}

function errorOf(outcome: WorkOutcome<unknown>): unknown {
  return "error" in outcome ? outcome.error : undefined;
}

function errorData(error: unknown): Record<string, unknown> | undefined {
  return error === undefined
    ? undefined
    : describeError(error, { requestId: "", environment: "production" }).log.data;
}
