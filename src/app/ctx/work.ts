import type { RequestView } from "../../base/request/request-view.ts";
import type { CommitItem } from "../../base/types/database.ts";
import type { Cause } from "../../parts/messages/envelope.ts";
import type { WriteAnswer } from "../../parts/once/answer.ts";
import type { TransactionItem } from "../../parts/once/claim-store.ts";
import type { Run } from "../../parts/once/claimed-run.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";

/** Hooks of features in one run. */
export interface RunHooks {
  /**
   * Runs before the handler. @throws any error of a hook, with the same consequences as an error of
   * the handler.
   */
  before(ctx: PipelineContext): Promise<void>;
  /** Returns the items that join the transaction of `result`. @throws any error of a hook. */
  itemsOf(result: unknown): Promise<readonly CommitItem[]>;
}

/** Handler to run, and the processing of its result. */
export interface Work<Result> extends Pick<Run<Result>, "claim" | "logPrefix" | "answerOf"> {
  /** Creates the handler's view of the request at first access. */
  readonly request?: (() => RequestView) | undefined;
  /** Cause that the run's events and jobs carry. The scope adds the originator. */
  readonly cause: Omit<Cause, "originator">;
  handle(ctx: PipelineContext): Result | Promise<Result>;
  /**
   * Converts the result that the handler commits, or returns without a commit. Default: unchanged.
   * @throws any error, with the same consequences as an error of the handler.
   */
  receive?(returned: unknown): Result | Promise<Result>;
  readonly hooks?: RunHooks | undefined;
  /**
   * Creates keelson's items that record the end of the run. They join its commit, or are committed
   * at its end.
   */
  readonly own?: (() => readonly TransactionItem[]) | undefined;
  /**
   * Creates the answer that is committed with a converted result. @throws if the result cannot be
   * sent.
   */
  committedAnswer(result: unknown): WriteAnswer | Promise<WriteAnswer>;
}
