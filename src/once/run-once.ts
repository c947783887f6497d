import { describeError } from "../errors/describe.ts";
import { FrameworkError, isTypedError } from "../errors/errors.ts";
import type { Clock } from "../process/clock.ts";
import { type Answer, loadAnswer, replayOf, saysNotDone, storeAnswer } from "./answer.ts";
import { type CompletedClaim, expiry } from "./claim.ts";
import { keyText } from "./claim-key.ts";
import type { ClaimStore } from "./claim-store.ts";
import type { Claim, Claims, Taken } from "./claims.ts";
import type { Ended, OnceClaim, Run, RunParts } from "./run.ts";
import { createRunCommit, type RunCommit } from "./run-commit.ts";
import { type ClaimEnd, settlementOf, type WorkEnd } from "./settlement.ts";

/** What all runs of a server share. */
export interface OnceParts {
  readonly store: ClaimStore;
  readonly claims: Claims;
  readonly clock: Clock;
  readonly pause: (attempt: number) => Promise<void>;
  /** How long a write waits for its duplicate in flight, in milliseconds; a message comes again instead. */
  readonly waitMs: number;
  /** Aborts when the process drains: then nobody waits for a duplicate. */
  readonly draining: AbortSignal;
  /** Told of each answer of a write that is stored, until when in seconds since the epoch. */
  remember(run: Pick<Run<never>, "claim" | "text">, answer: Answer, expiresAt: number): void;
}

type Outcome<Result> =
  | { readonly result: Result; readonly answer?: Answer }
  /** Refused: it came to its end, and has an answer that cannot be given. */
  | { readonly error: unknown; readonly isRefused?: boolean };

/**
 * Does the work of a run under its claim, or says what became of it before.
 *
 * @throws whatever the work throws; FrameworkError `request_in_progress` where the duplicate of a write is at work for longer
 * than one waits, `idempotency_key_reused` for other work under the key; Error where what a message did could not be noted;
 * whatever the store throws where the claim cannot be taken.
 */
export async function runOnce<Result>(parts: OnceParts, run: Run<Result>): Promise<Ended<Result>> {
  if (run.claim === undefined) return new RunAtWork(parts, run, undefined).ended();
  const taken = await take(parts, run, run.claim);
  if (taken.kind === "running") {
    if (run.claim.kind === "write") throw inProgress();
    return taken;
  }
  if (taken.kind === "done") return replay(parts, run, run.claim, taken);
  return new RunAtWork(parts, run, taken.claim).ended();
}

async function take<Result>(
  parts: OnceParts,
  { signal, log, what }: Run<Result>,
  { kind, key, fingerprint, comparesFingerprint = false, deadlineMs }: OnceClaim,
): Promise<Exclude<Taken, { kind: "other" }>> {
  const waitMs = kind === "write" ? parts.waitMs : 0;
  const stop = signal === undefined ? [parts.draining] : [signal, parts.draining];
  const taken = await parts.claims.take(key, { fingerprint, comparesFingerprint, deadlineMs, waitMs, stop });
  if (taken.kind === "other") throw keyReused();
  if (kind === "write" && taken.kind !== "done") {
    if (taken.kind === "taken") log.debug(`${what}.taken`, { waited: taken.hasWaited });
    else log.debug(`${what}.conflicted`, { leaseUntil: new Date(taken.untilMs).toISOString() });
  }
  return taken;
}

/** The same key was sent with another request. */
export function keyReused(): FrameworkError {
  return new FrameworkError("idempotency_key_reused", "The Idempotency-Key was used for another request; send a new one");
}

/** A duplicate is at work. */
export function inProgress(): FrameworkError {
  return new FrameworkError("request_in_progress", "The same request is being processed; try again later", {
    headers: { "retry-after": "1" },
  });
}

async function replay<Result>(
  { store, remember }: OnceParts,
  run: Run<Result>,
  claim: OnceClaim,
  { record, hasWaited }: { readonly record: CompletedClaim; readonly hasWaited: boolean },
): Promise<Extract<Ended<Result>, { kind: "replayed" }>> {
  if (claim.kind === "message") return { kind: "replayed", answer: undefined };
  const answer = await loadAnswer(store, claim.key, record, claim.cipher);
  run.log.debug(`${run.what}.replayed`, { waited: hasWaited });
  remember(run, answer, record.expiresAt);
  return { kind: "replayed", answer };
}

/** A run at work: what it did, what it committed, and whose its claim is. */
class RunAtWork<Result> implements RunParts {
  readonly #parts: OnceParts;
  readonly #run: Run<Result>;
  readonly signal: AbortSignal | undefined;
  /** Another one where the run has taken its claim once more. */
  #claim: Claim | undefined;
  #commit: RunCommit | undefined = undefined;
  /** What repeats get of its answer. */
  #kept: Answer | undefined = undefined;
  #seed: string | undefined = undefined;

  constructor(parts: OnceParts, run: Run<Result>, claim: Claim | undefined) {
    this.#parts = parts;
    this.#run = run;
    this.#claim = claim;
    this.signal = run.signal;
  }

  /** Made for the first commit: most runs have none. */
  readonly commit: RunCommit["commit"] = (...given) => {
    const { store, clock, pause } = this.#parts;
    const { claim: wanted, signal } = this.#run;
    const kept = (answer: Answer) => (wanted === undefined ? answer : keptOf(wanted, answer));
    this.#commit ??= createRunCommit({ store, clock, pause, claim: this.#claim, cipher: wanted?.cipher, kept, signal });
    return this.#commit.commit(...given);
  };

  seed(): string {
    this.#seed ??= this.#claim === undefined ? crypto.randomUUID() : keyText(this.#claim.key);
    return this.#seed;
  }

  async ended(): Promise<Ended<Result>> {
    const outcome = await this.#work();
    await this.#commit?.settled();
    return this.#settled(outcome);
  }

  async #work(): Promise<Outcome<Result>> {
    try {
      return { result: await this.#run.work(this) };
    } catch (error) {
      return { error };
    }
  }

  /** Goes on as `settlement.ts` says, until there is something to give. */
  async #settled(worked: Outcome<Result>): Promise<Ended<Result>> {
    const { claim: wanted, what, log, answerOf } = this.#run;
    const committed = this.#commit?.committed();
    const commit = committed !== undefined ? "committed" : this.#commit?.isUncertain() === true ? "unknown" : "none";
    const outcome = commit === "none" ? this.#answered(worked) : worked;
    const end = this.#endOf(outcome);
    let step: Step = { claim: this.#claim === undefined ? "unclaimed" : this.#claim.isLost() ? "lost" : "ours" };
    for (;;) {
      const { record, given, line } = settlementOf(wanted?.kind ?? "write", end, commit, step.claim);
      if (line !== undefined) log[line.level](`${what}.${line.message}`, errorData(step.failure ?? errorOf(outcome)));
      switch (record) {
        case "leave":
          this.#claim?.abandon();
          break;
        case "release":
          await this.#release();
          break;
        case "complete":
          step = await this.#complete();
          continue;
        case "take again":
          step = await this.#takeAgain();
          continue;
      }
      // Safe, here and below: the table gives only what is there.
      switch (given) {
        case "own":
          if ("error" in outcome) throw outcome.error;
          return {
            kind: "done",
            result: outcome.result,
            answer: wanted?.kind === "write" ? answerOf(outcome.result) : undefined,
          };
        case "committed": {
          const { answer, kept, expiresAt } = committed as NonNullable<typeof committed>;
          if (wanted?.kind === "write") this.#parts.remember(this.#run, kept, expiresAt);
          return { kind: "committed", answer };
        }
        case "theirs":
          return replay(this.#parts, this.#run, wanted as OnceClaim, step.theirs as NonNullable<Step["theirs"]>);
        case "again":
          return { kind: "again" };
        case "not noted":
          throw new Error("what was done could not be noted; it may be done again", { cause: step.failure });
      }
    }
  }

  /** The outcome with its answer, or the error of an answer that the transport would not take. */
  #answered(outcome: Outcome<Result>): Outcome<Result> {
    const { claim, answerOf } = this.#run;
    if ("error" in outcome || claim?.kind !== "write") return outcome;
    const { result } = outcome;
    const answer = answerOf(result);
    if (isRefusal(answer)) return { result, answer };
    try {
      this.#kept = keptOf(claim, answer);
      return { result, answer };
    } catch (error) {
      return { error, isRefused: true };
    }
  }

  #endOf(outcome: Outcome<Result>): WorkEnd {
    const { signal } = this;
    if (!("error" in outcome)) return outcome.answer !== undefined && isRefusal(outcome.answer) ? "refused" : "answered";
    if (outcome.isRefused === true) return "refused";
    if (signal?.aborted !== true) return "threw";
    return isTypedError(signal.reason) && signal.reason.code === "timeout" ? "timed out" : "stopped";
  }

  async #complete(): Promise<Step> {
    const { store, clock, remember } = this.#parts;
    // Safe: what is completed is claimed.
    const [claim, wanted] = [this.#claim as Claim, this.#run.claim as OnceClaim];
    const answer = this.#kept;
    try {
      if (answer === undefined) return { claim: (await claim.complete(undefined)) ? "completed" : "fenced" };
      const expiresAt = expiry(clock.now());
      const { key, owner } = claim;
      const result = await storeAnswer(store, { answer, key, owner, expiresAt, cipher: wanted.cipher });
      if (!(await claim.complete(result))) return { claim: "fenced" };
      remember(this.#run, answer, expiresAt);
      return { claim: "completed" };
    } catch (failure) {
      return { claim: "not noted", failure };
    }
  }

  /** Another run had taken over: its answer is the one that counts, so that all callers hold the same. */
  async #takeAgain(): Promise<Step> {
    try {
      const taken = await take(this.#parts, this.#run, this.#run.claim as OnceClaim); // safe: it was taken before
      if (taken.kind === "done") return { claim: "theirs", theirs: taken };
      if (taken.kind === "running") return { claim: "unclear", failure: inProgress() };
      // The other one failed and has let go: what we did is what counts.
      this.#claim = taken.claim;
      return { claim: "ours" };
    } catch (failure) {
      return { claim: "unclear", failure };
    }
  }

  async #release(): Promise<void> {
    const claim = this.#claim as Claim; // safe: as above
    try {
      await claim.release();
    } catch (error) {
      // The outcome of the run is what the caller has to hear of; the lease ends by itself.
      claim.abandon();
      this.#run.log.warn("once.release_failed", errorData(error));
    }
  }
}

/** How far a run has come with its claim. */
interface Step {
  readonly claim: ClaimEnd;
  /** Why it came no further. */
  readonly failure?: unknown;
  readonly theirs?: Extract<Taken, { kind: "done" }>;
}

/** An answer that no repeat gets: it says that nothing was done, or it sets cookies. */
function isRefusal(answer: Answer): boolean {
  return saysNotDone(answer) || answer.cookies.length > 0;
}

/** What is kept of an answer. @throws where the transport would not take it. */
function keptOf(claim: OnceClaim, answer: Answer): Answer {
  claim.assertFits(answer);
  return replayOf(answer, claim.replayedHeaders);
}

function errorOf(outcome: Outcome<unknown>): unknown {
  return "error" in outcome ? outcome.error : undefined;
}

function errorData(error: unknown): Record<string, unknown> | undefined {
  return error === undefined ? undefined : describeError(error, { requestId: "", environment: "production" }).log.data;
}
