import type { WriteAnswer } from "./answer.ts";
import type { TransactionItem } from "./claim-store.ts";
import type { OnceClaim } from "./claims.ts";
import type { Contested } from "./contested.ts";
import type { Claim } from "./held-claim.ts";
import type { RunCommit } from "./run-commit.ts";
import type { RunLog } from "./run-log.ts";

export interface HeldRun {
  readonly claim: Claim;
  readonly wanted: OnceClaim;
}

export interface RunParts {
  readonly signal: AbortSignal | undefined;
  readonly commit: RunCommit["commit"];
  /**
   * Writes items if the run holds its claim, without completing the claim, for an answer that is
   * not stored. @throws the errors of {@link RunCommit.commit}.
   */
  commitApart(
    items: readonly TransactionItem[],
    own: readonly TransactionItem[],
    contested?: readonly Contested[],
  ): Promise<void>;
  isCommitUncertain(): boolean;
  held(): HeldRun | undefined;
  /** Returns the seed of the IDs of effects. A repeat of the run gets the same seed. */
  seed(): string;
}

export type RunWork<Result> = (run: RunParts) => Promise<Result>;

/** Outcome of a run. A failed run throws instead. */
export type RunOutcome<Result> =
  /**
   * This run did the work. A claimed write has an `answer`. Unless `isNoted`, a repeat may do the
   * work again, because the outcome of the commit or of completing the claim is unknown.
   */
  | {
      readonly kind: "done";
      readonly result: Result;
      readonly answer: WriteAnswer | undefined;
      readonly isNoted: boolean;
    }
  /** The run has committed this answer. Failures after the commit do not change the outcome. */
  | { readonly kind: "committed"; readonly answer: WriteAnswer }
  /** An earlier run did the work. A message has no answer. */
  | { readonly kind: "replayed"; readonly answer: WriteAnswer | undefined }
  /** A duplicate of the message is running. Its lease ends at `untilMs`. */
  | { readonly kind: "running"; readonly untilMs: number }
  /** Another run has taken the message over, so the message is redelivered. */
  | { readonly kind: "redeliver" };

export interface Run<Result> extends RunLog {
  /** Absent for a system run. */
  readonly tenantId?: string | undefined;
  readonly claim: OnceClaim | undefined;
  /** The time, if the caller has just read the clock. */
  readonly nowMs?: number | undefined;
  readonly signal: AbortSignal | undefined;
  readonly work: RunWork<Result>;
  /** Converts a result to its answer; called more than once. Required for a claimed write. */
  readonly answerOf?: ((result: Result) => WriteAnswer) | undefined;
}
