import { describeError } from "../errors/describe.ts";
import { FrameworkError, isTypedError } from "../errors/errors.ts";
import type { Logger } from "../log/logger.ts";
import type { Clock } from "../process/clock.ts";
import { type Answer, replayOf, saysNotDone } from "./answer.ts";
import { type CompletedClaim, expiry } from "./claim.ts";
import { keyText } from "./claim-key.ts";
import type { ClaimKey, ClaimStore } from "./claim-store.ts";
import type { Claim, Claims, Taken } from "./claims.ts";
import { createRunCommit, type RunCommit } from "./run-commit.ts";
import { type AnswerCipher, loadAnswer, storeAnswer } from "./stored-answers.ts";
import type { ClaimEngine } from "./write-claim-layer.ts";

/** A write that is to happen once. */
export interface OnceWrite {
  readonly key: ClaimKey;
  /** What is asked for. */
  readonly fingerprint: string;
  /** Whether the same key with another fingerprint is refused. */
  readonly comparesFingerprint: boolean;
  /** Headers that a repeat gets too, beside the usual ones. */
  readonly replayedHeaders: readonly string[];
  /** Seals the stored answer. */
  readonly cipher: AnswerCipher | undefined;
  /** When the process will be gone, in milliseconds since the epoch. */
  readonly deadlineMs: number | undefined;
  readonly log: Logger;
  /** @throws where the transport would not take the answer. */
  assertFits(answer: Answer): void;
}

/** The work of a write; it throws, or gives an answer. */
export type Work = (run: {
  readonly signal: AbortSignal | undefined;
  readonly commit: RunCommit["commit"];
  /** Of what belongs to the run, IDs are derived: the same where it is run again. */
  readonly seed: () => string;
}) => Promise<Answer>;

/** An answer, and whether it is one of before. */
export interface OnceAnswer {
  readonly answer: Answer;
  readonly isReplay: boolean;
}

/** What all runs of a server share. */
export interface RunParts {
  /** Powertools' engine, loaded with the first claim. */
  engine(): Promise<ClaimEngine>;
  readonly store: ClaimStore;
  readonly claims: Claims;
  readonly clock: Clock;
  readonly pause: (attempt: number) => Promise<void>;
  /** How long to wait for a twin in flight, in milliseconds. */
  readonly waitMs: number;
  /** Aborts when the process drains: then nobody waits for a twin. */
  readonly draining: AbortSignal;
  /** Told of each answer that is stored, until when in seconds since the epoch. */
  remember(write: OnceWrite, answer: Answer, expiresAt: number): void;
}

type Outcome = OnceAnswer | { readonly error: unknown };

/**
 * Does the work of a write under its claim, or gives the answer of before.
 *
 * @throws whatever the work throws; FrameworkError `request_in_progress` where a twin is at work for longer
 * than one waits, `idempotency_key_reused` for other work under the key; whatever the store throws.
 */
export async function claimedRun(parts: RunParts, write: OnceWrite, signal: AbortSignal, work: Work): Promise<OnceAnswer> {
  const engine = await parts.engine();
  const run = createRun(parts, write, signal, work);
  await engine.run(run);
  const outcome = run.outcome();
  if ("error" in outcome) throw outcome.error;
  return outcome;
}

const notBegun: Outcome = { error: new Error("the run has not begun") };

/** The steps of one run, and what came of them. */
function createRun(parts: RunParts, write: OnceWrite, signal: AbortSignal, work: Work) {
  const { log } = write;
  let claim: Claim | undefined;
  let commit: RunCommit | undefined;
  let outcome: Outcome = notBegun;
  /** Made for the first commit: most runs have none. */
  const committing = (): RunCommit => {
    const { store, clock, pause } = parts;
    const kept = (answer: Answer) => keptOf(write, answer);
    commit ??= createRunCommit({ store, clock, pause, claim, cipher: write.cipher, kept, signal });
    return commit;
  };
  return {
    outcome: () => outcome,
    take: async () => {
      const taken = await take(parts, write, signal);
      if (taken.kind === "done") {
        outcome = await replay(parts, write, taken);
        return false;
      }
      ({ claim } = taken);
      log.debug("once.taken", { waited: taken.hasWaited });
      return true;
    },
    work: async () => {
      try {
        outcome = {
          answer: await work({ signal, commit: (...given) => committing().commit(...given), seed: () => keyText(write.key) }),
          isReplay: false,
        };
      } catch (error) {
        outcome = { error };
      }
      await commit?.settled();
    },
    settle: async () => {
      // Safe: only what was taken is settled.
      outcome = await settle(parts, write, { claim: claim as Claim, commit, outcome, signal });
    },
  };
}

async function take(parts: RunParts, write: OnceWrite, signal: AbortSignal): Promise<Extract<Taken, { hasWaited: boolean }>> {
  const { key, fingerprint, comparesFingerprint, deadlineMs, log } = write;
  const stop = [signal, parts.draining];
  const taken = await parts.claims.take(key, { fingerprint, comparesFingerprint, deadlineMs, waitMs: parts.waitMs, stop });
  if (taken.kind === "other") throw keyReused();
  if (taken.kind !== "running") return taken;
  log.debug("once.conflicted", { leaseUntil: new Date(taken.untilMs).toISOString() });
  throw inProgress();
}

/** The same key was sent with another request. */
export function keyReused(): FrameworkError {
  return new FrameworkError("idempotency_key_reused", "The Idempotency-Key was used for another request; send a new one");
}

/** A twin is at work. */
export function inProgress(): FrameworkError {
  return new FrameworkError("request_in_progress", "The same request is being processed; try again later", {
    headers: { "retry-after": "1" },
  });
}

async function replay(
  { store, remember }: RunParts,
  write: OnceWrite,
  { record, hasWaited }: { readonly record: CompletedClaim; readonly hasWaited: boolean },
): Promise<OnceAnswer> {
  const answer = await loadAnswer(store, write.key, record, write.cipher);
  write.log.debug("once.replayed", { waited: hasWaited });
  remember(write, answer, record.expiresAt);
  return { answer, isReplay: true };
}

interface Settling {
  readonly claim: Claim;
  /** Absent where nothing was committed. */
  readonly commit: RunCommit | undefined;
  readonly outcome: Outcome;
  readonly signal: AbortSignal;
}

/**
 * Ends a run:
 *
 * | what happened | the claim is | the caller gets |
 * |---|---|---|
 * | it committed | completed already | what was committed, whatever came later |
 * | a commit of which nobody knows | left until its lease ends | the error |
 * | it threw after its time was over | left until its lease ends | the error |
 * | it threw, or answered from 400 on | released | the error or answer |
 * | it answered, or did its work and has no answer | completed | the answer, or the 500 that says so |
 * | it answered, or was fenced, and another had taken over | the other's | the other's answer |
 */
async function settle(parts: RunParts, write: OnceWrite, { claim, commit, outcome, signal }: Settling): Promise<Outcome> {
  const { log } = write;
  const committed = commit?.committed();
  if (committed !== undefined) {
    claim.abandon();
    const { answer, kept, expiresAt } = committed;
    if ("error" in outcome) log.error("once.threw_after_commit", errorData(outcome.error));
    parts.remember(write, kept, expiresAt);
    return { answer, isReplay: false };
  }
  if (commit?.isUncertain()) {
    claim.abandon();
    log.error("once.commit_uncertain");
    return outcome;
  }
  if ("error" in outcome) {
    if (isTimeout(signal)) {
      // It was told to stop, and nobody knows how far it came: the claim stays until its lease ends.
      claim.abandon();
      return outcome;
    }
    if (claim.isLost() && !signal.aborted) return otherRun(parts, write, signal, undefined, outcome);
    await release(claim, log);
    return outcome;
  }
  const { answer } = outcome;
  if (saysNotDone(answer) || answer.cookies.length > 0) {
    await release(claim, log);
    return outcome;
  }
  return complete(parts, write, { claim, answer, signal });
}

async function complete(
  parts: RunParts,
  write: OnceWrite,
  { claim, answer, signal }: { readonly claim: Claim; readonly answer: Answer; readonly signal: AbortSignal },
): Promise<Outcome> {
  const { log } = write;
  let kept: Answer;
  try {
    kept = keptOf(write, answer);
  } catch (error) {
    await release(claim, log);
    return { error };
  }
  try {
    const expiresAt = expiry(parts.clock.now());
    const { key, owner } = claim;
    const result = await storeAnswer(parts.store, { answer: kept, key, owner, expiresAt, cipher: write.cipher });
    if (await claim.complete(result)) {
      parts.remember(write, kept, expiresAt);
      return { answer, isReplay: false };
    }
  } catch (error) {
    // What was done is done, and the caller is told so; only a repeat may do it again.
    claim.abandon();
    log.error("once.completion_failed", errorData(error));
    return { answer, isReplay: false };
  }
  log.warn("once.fenced");
  return otherRun(parts, write, signal, answer, { answer, isReplay: false });
}

/** Another run had taken over: its answer is the one that counts, so that all callers hold the same. */
async function otherRun(
  parts: RunParts,
  write: OnceWrite,
  signal: AbortSignal,
  ours: Answer | undefined,
  otherwise: Outcome,
): Promise<Outcome> {
  const taken = await take(parts, write, signal).catch((error: unknown) => ({ kind: "unknown", error }) as const);
  if (taken.kind === "done") return replay(parts, write, taken);
  if (taken.kind === "unknown") {
    write.log.warn("once.lost", errorData(taken.error));
    return otherwise;
  }
  // The other one failed and has let go: what we did is what counts.
  if (ours !== undefined) return complete(parts, write, { claim: taken.claim, answer: ours, signal });
  await release(taken.claim, write.log);
  return otherwise;
}

/** What is kept of an answer. @throws where the transport would not take it. */
function keptOf(write: OnceWrite, answer: Answer): Answer {
  write.assertFits(answer);
  return replayOf(answer, write.replayedHeaders);
}

/** Whether the run was given up on because its time was over. */
function isTimeout({ aborted, reason }: AbortSignal): boolean {
  return aborted && isTypedError(reason) && reason.code === "timeout";
}

function errorData(error: unknown): Record<string, unknown> {
  return describeError(error, { requestId: "", environment: "production" }).log.data;
}

async function release(claim: Claim, log: Logger): Promise<void> {
  try {
    await claim.release();
  } catch (error) {
    // The outcome of the run is what the caller has to hear of; the lease ends by itself.
    claim.abandon();
    log.warn("once.release_failed", errorData(error));
  }
}
