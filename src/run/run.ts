import type { CommitItem } from "../context/database.ts";
import type { Effects } from "../declare/effects.ts";
import type { PipelineContext } from "../declare/pipeline-context.ts";
import type { Cause } from "../events/cause.ts";
import type { WriteAnswer } from "../once/answer.ts";
import type { TransactionItem } from "../once/claim-store.ts";
import type { Run, RunOutcome, RunParts } from "../once/once-run.ts";
import type { Adapters } from "./adapters.ts";
import { type ContextParts, createContext } from "./context.ts";
import { createEffects } from "./effects.ts";
import type { Runs } from "./runs.ts";
import type { RequestScope } from "./scope.ts";
import type { WriteHooks } from "./write-hooks.ts";

/** What is run, and what becomes of its result. */
export interface Work<Result> extends Pick<Run<Result>, "claim" | "logPrefix" | "answerOf">, Pick<ContextParts, "request"> {
  /** What events and jobs of the run say of where they come from. */
  readonly cause: Cause;
  /** Runs the handler. */
  handle(ctx: PipelineContext): Result | Promise<Result>;
  /**
   * Makes of what the handler returned, or commits, what counts. It gets what is committed before it is, and what is returned
   * only where nothing was. Default: it counts as it is. @throws as the handler may, and with the same consequences.
   */
  receive?(returned: unknown): Result | Promise<Result>;
  /** What features have hooked into it. */
  readonly hooks?: Pick<WriteHooks, "isRunning" | "itemsOf"> | undefined;
  /** Items of keelson's own that say of the run that it is done: they join what it commits, or are committed at its end. */
  readonly own?: (() => readonly TransactionItem[]) | undefined;
  /** The answer that is committed with what a handler gives `ctx.commit`, as it was received. @throws where none can be made of it. */
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
  const given: Run<Result> = {
    ...{ claim, logPrefix, log, signal, tenantId, answerOf },
    work: (parts) => {
      const own = withOwn(parts, work.own);
      return perform(scope, adapters, runs, scope.spans?.committing(own) ?? own, work);
    },
  };
  const { spans } = scope;
  const outcome = await (spans === undefined ? runs.once.run(given) : spans.claimed(given, (run) => runs.once.run(run)));
  if (outcome.kind === "replayed") scope.isReplayed = true;
  return outcome;
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
  const { hooks } = work;
  const joining = async (from: NonNullable<typeof hooks>, result: unknown): Promise<readonly CommitItem[]> => {
    const items = await from.itemsOf(result);
    return adapters.wall?.checkItems(items, { tenantId: scope.user.tenantId, log: scope.log }) ?? items;
  };
  const commitAll = async (items: readonly CommitItem[], result: unknown): Promise<void> => {
    if (hooks?.isRunning()) throw new Error("ctx.commit: a hook commits nothing; return the items from its `commit`");
    const received = work.receive === undefined ? result : await work.receive(result);
    const answer = await work.committedAnswer(received);
    const all = hooks === undefined ? items : [...items, ...(await joining(hooks, received))];
    await (made.effects ?? parts).commit(all, answer);
  };
  let committing: Promise<void> | undefined;
  const commit: ContextParts["commit"] = (items, result) => {
    committing = commitAll(items, result);
    return committing;
  };
  const returned = await work.handle(createContext(scope, adapters, { request: work.request, effects, commit }));
  // A handler may not have waited for its commit: whether what it returned counts, and hooks have to be asked, shows only then.
  if (committing !== undefined) await committing.catch(() => undefined);
  const result = work.receive === undefined || parts.hasCommitted() ? returned : await work.receive(returned);
  if (hooks === undefined) await made.effects?.settle(() => work.answerOf(result));
  else {
    await effects().settle(
      () => work.answerOf(result),
      () => joining(hooks, result),
    );
  }
  if (work.own !== undefined && !parts.hasCommitted()) await parts.commit([], work.answerOf(result));
  return result;
}

/** The same parts, whose commit takes items of keelson's own along. */
function withOwn(parts: RunParts, own: Work<unknown>["own"]): RunParts {
  if (own === undefined) return parts;
  return {
    signal: parts.signal,
    commit: (items, answer, others = []) => parts.commit(items, answer, [...others, ...own()]),
    hasCommitted: () => parts.hasCommitted(),
    held: () => parts.held(),
    seed: () => parts.seed(),
  };
}
