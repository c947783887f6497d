import type { Logger } from "../log/logger.ts";
import type { Answer, AnswerCipher } from "./answer.ts";
import type { ClaimKey } from "./claim-store.ts";
import type { RunCommit } from "./run-commit.ts";
import type { RunKind } from "./settlement.ts";

/** What is to happen once. */
export interface OnceClaim {
  readonly kind: RunKind;
  readonly key: ClaimKey;
  /** What is asked for. */
  readonly fingerprint?: string | undefined;
  /** Whether the same key with another fingerprint is refused. Default `false`. */
  readonly comparesFingerprint?: boolean;
  /** Headers that a repeat gets too, beside the usual ones. */
  readonly replayedHeaders: readonly string[];
  /** Seals the stored answer. */
  readonly cipher: AnswerCipher | undefined;
  /** When the process will be gone, in milliseconds since the epoch. */
  readonly deadlineMs: number | undefined;
  /** @throws where the transport would not take the answer. */
  assertFits(answer: Answer): void;
}

/** What a run logs with. */
export interface RunLog {
  readonly log: Logger;
  /** What its lines begin with. */
  readonly what: "once" | "event" | "job";
}

/** What the work of a run is given. */
export interface RunParts {
  readonly signal: AbortSignal | undefined;
  readonly commit: RunCommit["commit"];
  /** Of what belongs to the run, IDs are derived: the same where it is run again. */
  seed(): string;
}

/** The work of a run; it throws, or gives a result. */
export type Work<Result> = (run: RunParts) => Promise<Result>;

/** How a run ended; where it failed, its error is thrown. */
export type Ended<Result> =
  /** The work's own result is what counts; of a write that is claimed there is the answer as well. */
  | { readonly kind: "done"; readonly result: Result; readonly answer: Answer | undefined }
  /** It committed: what it did afterwards does not count. */
  | { readonly kind: "committed"; readonly answer: Answer }
  /** It was done before; of a message nobody asks for the answer. */
  | { readonly kind: "replayed"; readonly answer: Answer | undefined }
  /** Another is at work, until then at the most. */
  | { readonly kind: "running"; readonly untilMs: number }
  /** A message that another has taken over. */
  | { readonly kind: "again" };

/** One run: its claim, if it has one, and what is done under it. */
export interface Run<Result> extends RunLog {
  /** Absent where nothing claims it. */
  readonly claim: OnceClaim | undefined;
  /** The text of the claim's key, where it is known: what stands in maps is hashed once. */
  readonly text?: string;
  readonly signal: AbortSignal | undefined;
  readonly work: Work<Result>;
  /** The answer of a result; asked for more than once, of a write that is claimed. */
  readonly answerOf: (result: Result) => Answer;
}
