import type { PipelineContext } from "../declare/pipeline-context.ts";
import type { Cause } from "../events/cause.ts";
import type { WriteAnswer } from "../once/answer.ts";
import type { Run, RunOutcome, RunParts } from "../once/once-run.ts";
import type { Adapters } from "./adapters.ts";
import { type ContextParts, createContext } from "./context.ts";
import { createEffects, type Effects } from "./effects.ts";
import type { Runs } from "./runs.ts";
import type { RequestScope } from "./scope.ts";

/** What is run, and what becomes of its result. */
export interface Work<Result> extends Pick<Run<Result>, "claim" | "logPrefix" | "answerOf">, Pick<ContextParts, "request"> {
  /** What events and jobs of the run say of where they come from. */
  readonly cause: Cause;
  /** Runs the handler. */
  handle(ctx: PipelineContext): Result | Promise<Result>;
  /** The answer that is committed with what a handler gives `ctx.commit`. @throws where none can be made of it. */
  committedAnswer(result: unknown): WriteAnswer | Promise<WriteAnswer>;
}

/**
 * Runs a handler that has effects, on the one way that a write, a consumer, a job, a delivery and an adopted handler go: claim,
 * context, effects, commit, settle.
 *
 * @throws as `runOnce`.
 */
export async function run<Result>(scope: RequestScope, adapters: Adapters, work: Work<Result>): Promise<RunOutcome<Result>> {
  const { runtime, log, signal } = scope;
  const { claim, logPrefix, answerOf } = work;
  const runs = runtime.openedRuns ?? (await runtime.runs());
  const { tenantId } = scope.user;
  return runs.once.run({
    ...{ claim, logPrefix, log, signal, tenantId, answerOf },
    work: (parts) => perform(scope, adapters, runs, parts, work),
  });
}

async function perform<Result>(
  scope: RequestScope,
  adapters: Adapters,
  runs: Runs,
  parts: RunParts,
  work: Work<Result>,
): Promise<Result> {
  const made: { effects?: Effects } = {};
  // Made for the first event, job or delivery: most runs have none.
  const effects = () => {
    made.effects ??= createEffects(scope, adapters, runs, parts, work.cause);
    return made.effects;
  };
  // A request without a signal gets none, even if other callers share its run.
  if (scope.signal !== undefined) scope.runSignal = parts.signal;
  const commit: ContextParts["commit"] = async (items, result) => {
    const answer = await work.committedAnswer(result);
    await (made.effects ?? parts).commit(items, answer);
  };
  const result = await work.handle(createContext(scope, adapters, { request: work.request, effects, commit }));
  await made.effects?.settle(() => work.answerOf(result));
  return result;
}
