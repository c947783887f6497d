import type { Logger } from "../../base/log/logger.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { AnswerCipher, WriteAnswer } from "./answer.ts";
import type { ClaimKey } from "./claim.ts";
import type { ClaimStore, TransactionItem } from "./claim-store.ts";
import type { Claims } from "./claims.ts";
import type { Claim } from "./held-claim.ts";
import type { RunCommit } from "./run-commit.ts";
import type { CommitEnd, RunKind } from "./settlement.ts";

export interface OnceClaim {
  readonly kind: RunKind;
  readonly key: ClaimKey;
  /**
   * Whether other work may use the same key after this claim has expired, which means that derived
   * IDs need a generation. Default: `true` for a write, `false` for a message.
   */
  readonly hasReusableKey?: boolean | undefined;
  readonly fingerprint?: string | undefined;
  /** Whether the same key with another fingerprint is refused. Default `false`. */
  readonly comparesFingerprint?: boolean;
  /** Retention of the answer, in milliseconds. Default: five minutes. */
  readonly retentionMs?: number | undefined;
  /** Headers that the replay of a write contains in addition to the standard ones. */
  readonly replayedHeaders: readonly string[];
  /** Seals the stored answer of a write. */
  readonly cipher?: AnswerCipher | undefined;
  readonly deadlineMs: number | undefined;
  /** @throws if the answer of a write is too large for the transport. */
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
   * Writes items while the run holds its claim, without completing the claim. For an answer that is
   * not stored.
   *
   * @throws the errors of {@link RunCommit.commit}.
   */
  commitApart(items: readonly TransactionItem[], own: readonly TransactionItem[]): Promise<void>;
  /** Returns how the last attempt to commit ended. */
  commitEnd(): CommitEnd;
  /** Returns the claim of the run and the claimed work; `undefined` if the run has no claim. */
  held(): HeldRun | undefined;
  /** Returns the seed for the IDs of the run's effects. A repeat of the run gets the same seed. */
  seed(): string;
}

export type RunWork<Result> = (run: RunParts) => Promise<Result>;

/** End of a run. A failure is thrown instead. */
export type RunOutcome<Result> =
  /**
   * The result of the work counts. A claimed write also has its answer. `isNoted`: the claim
   * records everything, so a repeat within the retention does not do the work again.
   */
  | {
      readonly kind: "done";
      readonly result: Result;
      readonly answer: WriteAnswer | undefined;
      readonly isNoted: boolean;
    }
  /** The run has committed. Later failures do not count. */
  | { readonly kind: "committed"; readonly answer: WriteAnswer }
  /** An earlier run did the work. A message has no answer. */
  | { readonly kind: "replayed"; readonly answer: WriteAnswer | undefined }
  /** A duplicate is running. Its lease ends at `untilMs`. */
  | { readonly kind: "running"; readonly untilMs: number }
  /** Another run has taken the message over. The message is redelivered. */
  | { readonly kind: "redeliver" };

export interface Run<Result> extends RunLog {
  /** Tenant of the run. Absent for a system run. */
  readonly tenantId?: string | undefined;
  /** Absent if the run does not need a claim. */
  readonly claim: OnceClaim | undefined;
  /**
   * String form of the claim's key, if it is known. A caller that needs it for maps builds it once.
   */
  readonly text?: string;
  readonly signal: AbortSignal | undefined;
  readonly work: RunWork<Result>;
  /** Converts a result to its answer. Called more than once for a claimed write. */
  readonly answerOf: (result: Result) => WriteAnswer;
}

export interface OnceParts {
  readonly store: ClaimStore;
  readonly claims: Claims;
  readonly clock: Clock;
  readonly pause: (attempt: number) => Promise<void>;
  /**
   * Longest wait of a write for a duplicate in flight, in milliseconds. A message does not wait; it
   * is redelivered.
   */
  readonly waitMs: number;
  /** Aborts when the process drains, which ends all waits for duplicates. */
  readonly draining: AbortSignal;
  /** Counts the outcomes of claims; `undefined` turns counting off. */
  readonly metrics: Metrics | undefined;
  /** Receives each stored answer of a write. `expiresAt` is in seconds since the epoch. */
  remember(run: Pick<Run<never>, "claim" | "text">, answer: WriteAnswer, expiresAt: number): void;
}
