import type { RequestView } from "../../base/request/request-view.ts";
import type { CommitItem } from "../../base/types/database.ts";
import type { Cause } from "../../parts/messages/cause.ts";
import type { WriteAnswer } from "../../parts/once/answer.ts";
import type { TransactionItem } from "../../parts/once/claim-store.ts";
import type { Run } from "../../parts/once/claimed-run.ts";
import type { PipelineContext } from "../features/pipeline-context.ts";

/** The hooks of features into a run. */
export interface RunHooks {
  /** Runs before the handler. @throws as the handler may, and with the same consequences. */
  before(ctx: PipelineContext): Promise<void>;
  /** Returns the items that join the transaction of `result`. @throws any error of a hook. */
  itemsOf(result: unknown): Promise<readonly CommitItem[]>;
}

/** A handler to run, and the handling of its result. */
export interface Work<Result> extends Pick<Run<Result>, "claim" | "logPrefix" | "answerOf"> {
  /** Makes the request as handlers see it, for the first that looks at it. */
  readonly request?: (() => RequestView) | undefined;
  /** The cause that its events and jobs carry; the scope adds the originator. */
  readonly cause: Omit<Cause, "originator">;
  /** Runs the handler. */
  handle(ctx: PipelineContext): Result | Promise<Result>;
  /**
   * Converts the result that the handler commits, or returns without a commit. Default: unchanged. @throws as the handler may,
   * and with the same consequences.
   */
  receive?(returned: unknown): Result | Promise<Result>;
  readonly hooks?: RunHooks | undefined;
  /** Makes keelson's own items that record the end of the run. They join its commit, or are committed at its end. */
  readonly own?: (() => readonly TransactionItem[]) | undefined;
  /** Makes the answer that is committed with a converted result. @throws if the result cannot be sent. */
  committedAnswer(result: unknown): WriteAnswer | Promise<WriteAnswer>;
}
