import type { RequestView } from "../../base/request/request-view.ts";
import type { CommitItem } from "../../base/types/database.ts";
import type { Cause } from "../../parts/messages/envelope.ts";
import type { WriteAnswer } from "../../parts/once/answer.ts";
import type { TransactionItem } from "../../parts/once/claim-store.ts";
import type { Run, RunParts } from "../../parts/once/claimed-run.ts";
import type { Effects } from "../handlers/effects.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { EffectCaller } from "./effect-ledger.ts";

export interface RunCalls {
  start<Started>(
    caller: EffectCaller,
    work: (effects: Effects) => Promise<Started>,
  ): Promise<Started>;
  commit<Committed>(
    caller: EffectCaller,
    items: readonly CommitItem[],
    result: Committed,
  ): Promise<Committed>;
}

export interface RunHooks {
  /**
   * Returns the handler's input.
   * @throws any error of a hook, with the consequences of an error of the handler; TypeError if a
   * changed input does not match the schema.
   */
  before(ctx: PipelineContext, input: unknown): Promise<unknown>;
  /** Returns the items that join the transaction of `result`. @throws any error of a hook. */
  itemsOf(result: unknown): Promise<readonly CommitItem[]>;
}

export interface Committing {
  readonly result: unknown;
  readonly answer: WriteAnswer;
}

export interface Work<Result> extends Pick<Run<Result>, "claim" | "nowMs" | "logPrefix"> {
  readonly request?: (() => RequestView) | undefined;
  /** Of the run's events and jobs. The scope adds the originator. */
  readonly cause: Omit<Cause, "originator">;
  readonly input?: unknown;
  handle(ctx: PipelineContext, input: unknown, run: RunParts): Result | Promise<Result>;
  /**
   * Converts the result that the handler returns without a commit. Default: unchanged.
   * @throws any error, with the consequences of an error of the handler.
   */
  receive?(returned: unknown): Result | Promise<Result>;
  readonly hooks?: RunHooks | undefined;
  /** Creates items that record the end of the run, with its commit or at its end. */
  readonly own?: (() => readonly TransactionItem[]) | undefined;
  /** Called more than once. Required for a claimed write. */
  answerOf?(result: Result): WriteAnswer;
  /**
   * Converts the result that the handler commits. Default: unchanged, without an answer.
   * @throws the errors of `receive`, and if the result cannot be sent.
   */
  committing?(returned: unknown): Committing | Promise<Committing>;
}
