import type { Logger } from "../../base/log/logger.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { AnswerCipher, WriteAnswer } from "./answer.ts";
import type { ClaimKey } from "./claim.ts";
import type { ClaimStore, TransactionItem } from "./claim-store.ts";
import type { Claims } from "./claims.ts";
import type { Claim } from "./held-claim.ts";
import type { RunCommit } from "./run-commit.ts";
import type { RunKind } from "./settlement.ts";

export interface OnceClaim {
  readonly kind: RunKind;
  readonly key: ClaimKey;
  /**
   * Whether other work may use the same key after the claim has expired, so that derived IDs need a
   * generation. Default: `true` for a write, `false` for a message.
   */
  readonly hasReusableKey?: boolean | undefined;
  readonly fingerprint?: string | undefined;
  /** Whether the same key with another fingerprint is refused. Default `false`. */
  readonly comparesFingerprint?: boolean;
  /** Retention of the answer, in milliseconds. Default: five minutes. */
  readonly retentionMs?: number | undefined;
  /** Headers that the replay of a write contains in addition to the standard ones. */
  readonly replayedHeaders: readonly string[];
  /** Encrypts the stored answer of a write. */
  readonly cipher?: AnswerCipher | undefined;
  readonly deadlineMs: number | undefined;
  /** Checks the size of a write's answer. @throws if the transport cannot send it. */
  readonly assertFits?: ((answer: WriteAnswer) => void) | undefined;
}

export interface RunLog {
  readonly log: Logger;
  readonly logPrefix: "once" | "event" | "job" | "schedule";
}

export interface HeldRun {
  readonly claim: Claim;
  readonly wanted: OnceClaim;
}

export interface RunParts {
  readonly signal: AbortSignal | undefined;
  readonly commit: RunCommit["commit"];
  /**
   * Writes items if the run still holds its claim, without completing the claim. For an answer that
   * is not stored. @throws the errors of {@link RunCommit.commit}.
   */
  commitApart(items: readonly TransactionItem[], own: readonly TransactionItem[]): Promise<void>;
  /** Whether a commit of the run has an unknown outcome. */
  isCommitUncertain(): boolean;
  /** Returns the run's claim and its options; `undefined` if the run has no claim. */
  held(): HeldRun | undefined;
  /** Returns the seed for the IDs of the run's effects. A repeat of the run gets the same seed. */
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
  /** Tenant of the run. Absent for a system run. */
  readonly tenantId?: string | undefined;
  readonly claim: OnceClaim | undefined;
  /** `keyText` of the claim's key, if the caller has already computed it. */
  readonly text?: string;
  readonly signal: AbortSignal | undefined;
  readonly work: RunWork<Result>;
  /** Converts a result to its answer; called more than once. Required for a claimed write. */
  readonly answerOf?: ((result: Result) => WriteAnswer) | undefined;
}

export interface OnceParts {
  readonly store: ClaimStore;
  readonly claims: Claims;
  readonly clock: Clock;
  readonly pause: (attempt: number) => Promise<void>;
  /** Longest wait of a write for a running duplicate, in milliseconds. Messages do not wait. */
  readonly waitMs: number;
  /** Aborts when the process drains, which ends all waits for duplicates. */
  readonly draining: AbortSignal;
  readonly metrics: Metrics | undefined;
  /** Receives each stored answer of a write. `expiresAt` is in epoch seconds. */
  remember(run: Pick<Run<never>, "claim" | "text">, answer: WriteAnswer, expiresAt: number): void;
}
