import { errorLog } from "../../base/errors/describe.ts";
import { isTypedError } from "../../base/errors/errors.ts";
import {
  isNeverReplayed,
  noAnswer,
  storeAnswer,
  storedAnswer,
  type WriteAnswer,
} from "./answer.ts";
import { expiry } from "./claim.ts";
import { countEnd } from "./claim-counts.ts";
import { inProgress } from "./claim-errors.ts";
import type { HeldRun, Run, RunOutcome, RunParts } from "./claimed-run.ts";
import { type OnceClaim, type OnceParts, replay, type Taken, take } from "./claims.ts";
import type { Claim } from "./held-claim.ts";
import { RunCommit, type RunCommitOptions } from "./run-commit.ts";
import { type ClaimEnd, settlementOf, type WorkEnd } from "./settlement.ts";

/**
 * Runs the work under its claim, or replays an earlier run.
 *
 * @throws the error of the work; FrameworkError `request_in_progress` if the duplicate of a write
 * runs longer than `waitMs`, or `idempotency_key_reused` if the key was used for other work; Error
 * if a message's work is done but could not be recorded; any error of the store if the claim cannot
 * be taken.
 */
export async function performClaimed<Result>(
  parts: OnceParts,
  run: Run<Result>,
): Promise<RunOutcome<Result>> {
  if (run.claim === undefined) return new RunInProgress(parts, run, undefined).ended();
  const taken = await take(parts, run, run.claim, run.nowMs);
  if (taken.kind === "running") {
    if (run.claim.kind === "write") throw inProgress();
    return taken;
  }
  if (taken.kind === "done") return replay(parts, run, run.claim, taken);
  return new RunInProgress(parts, run, taken.claim).ended();
}

class RunInProgress<Result> implements RunParts {
  readonly #parts: OnceParts;
  readonly #run: Run<Result>;
  readonly signal: AbortSignal | undefined;
  /** Replaced when the run takes its claim again. */
  #claim: Claim | undefined;
  #commit: RunCommit | undefined = undefined;
  #apart: RunCommit | undefined = undefined;
  #stored: WriteAnswer | undefined = undefined;
  #seed: string | undefined = undefined;

  constructor(parts: OnceParts, run: Run<Result>, claim: Claim | undefined) {
    this.#parts = parts;
    this.#run = run;
    this.#claim = claim;
    this.signal = run.signal;
  }

  readonly commit: RunCommit["commit"] = (...given) => {
    const { claim: wanted } = this.#run;
    // A message's answer is never replayed, so it is not stored.
    const toStored =
      wanted?.kind === "write" ? (answer: WriteAnswer) => storedAnswer(wanted, answer) : undefined;
    this.#commit ??= this.#createCommit({ completes: true, cipher: wanted?.cipher, toStored });
    return this.#commit.commit(...given);
  };

  commitApart(...[items, own, contested]: Parameters<RunParts["commitApart"]>): Promise<void> {
    this.#apart = this.#createCommit({ completes: false, cipher: undefined, toStored: undefined });
    return this.#apart.commit(items, noAnswer, own, contested);
  }

  isCommitUncertain(): boolean {
    return this.#commit?.isUncertain() === true || this.#apart?.isUncertain() === true;
  }

  #createCommit(own: Pick<RunCommitOptions, "completes" | "cipher" | "toStored">): RunCommit {
    const { store, clock, pause } = this.#parts;
    const { signal, tenantId } = this.#run;
    return new RunCommit({ store, clock, pause, claim: this.#claim, tenantId, signal, ...own });
  }

  held(): HeldRun | undefined {
    const { claim: wanted } = this.#run;
    return this.#claim && wanted && { claim: this.#claim, wanted };
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

  /** Follows the table in `settlement.ts` until it names an outcome. */
  async #settled(worked: WorkOutcome<Result>): Promise<RunOutcome<Result>> {
    const { claim: wanted, logPrefix, log } = this.#run;
    const { metrics } = this.#parts;
    const committed = this.#commit?.committed();
    const isUnknown = this.#commit?.isUncertain() === true;
    const commit = committed !== undefined ? "committed" : isUnknown ? "unknown" : "none";
    const work = commit === "none" ? this.#answered(worked) : worked;
    const end = this.#endOf(work);
    let step: Step = {
      claim: this.#claim === undefined ? "unclaimed" : this.#claim.isLost() ? "lost" : "ours",
    };
    for (;;) {
      const kind = wanted?.kind ?? "write";
      const { record, outcome, line } = settlementOf(kind, end, commit, step.claim);
      if (line !== undefined)
        log[line.level](`${logPrefix}.${line.message}`, errorData(step.failure ?? errorOf(work)));
      if (metrics !== undefined && wanted !== undefined)
        countEnd(metrics, kind, { work: end, commit, ...step, isLast: outcome !== "" });
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
      // Safe casts: an outcome has its data.
      switch (outcome) {
        case "own":
          if ("error" in work) throw work.error;
          return {
            kind: "done",
            result: work.result,
            answer: wanted?.kind === "write" ? this.#answerOf(work.result) : undefined,
            isNoted:
              commit !== "unknown" && step.claim !== "unrecorded" && step.claim !== "unknown",
          };
        case "committed": {
          const { answer, stored, expiresAt } = committed as NonNullable<typeof committed>;
          if (stored !== undefined) this.#parts.remember(wanted as OnceClaim, stored, expiresAt);
          return { kind: "committed", answer };
        }
        case "theirs":
          return replay(this.#parts, this.#run, wanted as OnceClaim, step.theirs as TheirClaim);
        case "redeliver":
          return { kind: "redeliver" };
        case "unrecorded":
          throw new Error("the work is done, but could not be recorded; it may run again", {
            cause: step.failure,
          });
      }
    }
  }

  /** Adds a write's answer, or the error if the answer is too large for the transport. */
  #answered(outcome: WorkOutcome<Result>): WorkOutcome<Result> {
    const { claim } = this.#run;
    if ("error" in outcome || claim?.kind !== "write") return outcome;
    const { result } = outcome;
    const answer = this.#answerOf(result);
    if (isNeverReplayed(answer)) return { result, answer };
    try {
      this.#stored = storedAnswer(claim, answer);
      return { result, answer };
    } catch (error) {
      return { error, isRefused: true };
    }
  }

  #answerOf(result: Result): WriteAnswer {
    // Safe cast: a claimed write has `answerOf`, and nothing else is asked for its answer.
    return (this.#run.answerOf as NonNullable<Run<Result>["answerOf"]>)(result);
  }

  #endOf(outcome: WorkOutcome<Result>): WorkEnd {
    const { signal } = this;
    if (!("error" in outcome))
      return outcome.answer !== undefined && isNeverReplayed(outcome.answer)
        ? "refused"
        : "answered";
    if (outcome.isRefused === true) return "refused";
    if (signal?.aborted !== true) return "threw";
    return isTypedError(signal.reason) && signal.reason.code === "timeout"
      ? "timed out"
      : "stopped";
  }

  async #complete(): Promise<Step> {
    const { store, clock, remember } = this.#parts;
    // Safe casts: the run has a claim.
    const [claim, wanted] = [this.#claim as Claim, this.#run.claim as OnceClaim];
    const answer = this.#stored;
    try {
      if (answer === undefined)
        return { claim: (await claim.complete(undefined)) ? "completed" : "fenced" };
      const expiresAt = expiry(clock.now(), claim.retentionMs());
      const { key, owner } = claim;
      const { cipher } = wanted;
      const result = await storeAnswer(store, { answer, key, owner, expiresAt, cipher });
      if (!(await claim.complete(result))) return { claim: "fenced" };
      remember(wanted, answer, expiresAt);
      return { claim: "completed" };
    } catch (failure) {
      return { claim: "unrecorded", failure };
    }
  }

  /** If another run has completed the claim, all callers get that run's answer. */
  async #retake(): Promise<Step> {
    try {
      const taken = await take(this.#parts, this.#run, this.#run.claim as OnceClaim); // safe: the run had a claim
      if (taken.kind === "done") return { claim: "theirs", theirs: taken };
      if (taken.kind === "running") return { claim: "unknown", failure: inProgress() };
      // The other run has failed, so this run completes the claim.
      this.#claim = taken.claim;
      return { claim: "ours" };
    } catch (failure) {
      return { claim: "unknown", failure };
    }
  }

  async #release(): Promise<void> {
    const claim = this.#claim as Claim; // safe: only a run with a claim releases it
    try {
      await claim.release();
    } catch (error) {
      // The lease expires anyway.
      claim.abandon();
      this.#run.log.warn("once.release_failed", errorData(error));
    }
  }
}

type WorkOutcome<Result> =
  | { readonly result: Result; readonly answer?: WriteAnswer }
  /** `isRefused`: the work is done, but its answer cannot be sent. */
  | { readonly error: unknown; readonly isRefused?: boolean };

interface Step {
  readonly claim: ClaimEnd;
  /** Error of completing or retaking the claim. */
  readonly failure?: unknown;
  readonly theirs?: TheirClaim;
}

type TheirClaim = Extract<Taken, { kind: "done" }>;

function errorOf(outcome: WorkOutcome<unknown>): unknown {
  return "error" in outcome ? outcome.error : undefined;
}

function errorData(error: unknown): Record<string, unknown> | undefined {
  return error === undefined ? undefined : errorLog(error).data;
}
