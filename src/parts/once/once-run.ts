import type { Logger } from "../../base/log/logger.ts";
import type { AnswerCipher, WriteAnswer } from "./answer.ts";
import type { ClaimKey } from "./claim.ts";
import type { TransactionItem } from "./claim-store.ts";
import type { Claim } from "./claims.ts";
import type { RunCommit } from "./run-commit.ts";
import type { CommitEnd, RunKind } from "./settlement.ts";

/** What happens once. */
export interface OnceClaim {
  readonly kind: RunKind;
  readonly key: ClaimKey;
  /**
   * Whether other work may have the same key once this claim has expired, so that IDs derived from it need a generation. Default: a
   * write's may, a message's is its own.
   */
  readonly hasReusableKey?: boolean | undefined;
  /** What is asked for. */
  readonly fingerprint?: string | undefined;
  /** Whether the same key with another fingerprint is refused. Default `false`. */
  readonly comparesFingerprint?: boolean;
  /** For how long its answer is retained, in milliseconds. Default: five minutes. */
  readonly retentionMs?: number | undefined;
  /** Headers that a write's repeat gets too, besides the usual ones. */
  readonly replayedHeaders: readonly string[];
  /** Seals the stored answer of a write. */
  readonly cipher?: AnswerCipher | undefined;
  /** When the process will be gone, in milliseconds since the epoch. */
  readonly deadlineMs: number | undefined;
  /** @throws if the answer of a write is too large for the transport. */
  readonly assertFits?: ((answer: WriteAnswer) => void) | undefined;
}

/** How a run logs. */
export interface RunLog {
  readonly log: Logger;
  /** The prefix of its messages. */
  readonly logPrefix: "once" | "event" | "job" | "schedule";
}

/** The claim of a run, and what it was taken for. */
export interface HeldRun {
  readonly claim: Claim;
  readonly wanted: OnceClaim;
}

/** What the work of a run is given. */
export interface RunParts {
  readonly signal: AbortSignal | undefined;
  readonly commit: RunCommit["commit"];
  /**
   * Writes items while the run holds its claim, without completing it: for an answer that is not stored.
   *
   * @throws as {@link RunCommit.commit}.
   */
  commitApart(items: readonly TransactionItem[], own: readonly TransactionItem[]): Promise<void>;
  /** How the last attempt to write has ended. */
  commitEnd(): CommitEnd;
  /** The claim that it holds, and what was claimed; absent where nothing claims it. */
  held(): HeldRun | undefined;
  /** Derives the IDs of the run's effects: a repeated run gets the same. */
  seed(): string;
}

/** The work of a run. */
export type RunWork<Result> = (run: RunParts) => Promise<Result>;

/** How a run ended; a failure is thrown instead. */
export type RunOutcome<Result> =
  /**
   * The work's own result is what counts; of a write that is claimed there is the answer as well. `isNoted`: nothing is left
   * of which the claim does not say, so that a repeat that comes in time does not do it again.
   */
  | {
      readonly kind: "done";
      readonly result: Result;
      readonly answer: WriteAnswer | undefined;
      readonly isNoted: boolean;
    }
  /** It committed: what happened afterwards does not count. */
  | { readonly kind: "committed"; readonly answer: WriteAnswer }
  /** It was done before. A message has no answer. */
  | { readonly kind: "replayed"; readonly answer: WriteAnswer | undefined }
  /** A duplicate is running, until `untilMs` at most. */
  | { readonly kind: "running"; readonly untilMs: number }
  /** Another run has taken the message over: it is redelivered. */
  | { readonly kind: "redeliver" };

/** One run: its claim, if any, and its work. */
export interface Run<Result> extends RunLog {
  /** Whose it is; absent of a system run. */
  readonly tenantId?: string | undefined;
  /** Absent if the run needs no claim. */
  readonly claim: OnceClaim | undefined;
  /** The text of the claim's key, where it is known: what stands in maps is hashed once. */
  readonly text?: string;
  readonly signal: AbortSignal | undefined;
  readonly work: RunWork<Result>;
  /** The answer of a result; asked for more than once, of a write that is claimed. */
  readonly answerOf: (result: Result) => WriteAnswer;
}
