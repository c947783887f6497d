import type { Run, RunOutcome } from "../../parts/once/claimed-run.ts";
import { createContexts } from "../ctx/context.ts";
import { type CommitParts, RunCommits } from "../ctx/run-commits.ts";
import type { Work } from "../ctx/work.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { RequestScope } from "../runtime/scope.ts";

/**
 * Runs a handler that has effects. Writes, consumers, jobs, deliveries and adopted handlers all
 * take this path: claim, context, effects, commit, settle.
 *
 * @throws the same errors as `performClaimed`.
 */
export async function run<Result>(
  scope: RequestScope,
  adapters: Adapters,
  work: Work<Result>,
): Promise<RunOutcome<Result>> {
  const { runtime, log, signal, spans } = scope;
  const { claim, logPrefix, answerOf } = work;
  const runs = runtime.runs.value ?? (await runtime.runs.open());
  const { tenantId } = scope.user;
  const given: Run<Result> = {
    ...{ claim, logPrefix, log, signal, tenantId, answerOf },
    work: (parts) => {
      const run = spans?.committing(parts) ?? parts;
      return perform({ scope, log, adapters, runs, run, work });
    },
  };
  const outcome = await (spans === undefined
    ? runs.once.run(given)
    : spans.claimed(given, (run) => runs.once.run(run)));
  if (outcome.kind === "replayed") scope.isReplayed = true;
  return outcome;
}

async function perform<Result>(parts: CommitParts<Result>): Promise<Result> {
  const { scope, log, adapters, run, work } = parts;
  // A request without a signal does not get the signal of its run, even of a run shared with
  // others.
  if (scope.signal !== undefined) scope.runSignal = run.signal;
  const { request, hooks } = work;
  let { input } = work;
  const commits = new RunCommits(parts);
  const contexts = createContexts(scope, adapters, { request, commits, log });
  let returned: unknown;
  try {
    if (hooks !== undefined) {
      input = await hooks.before(contexts.of("hook"), input);
      commits.open();
    }
    returned = await work.handle(contexts.of("handler"), input);
  } catch (error) {
    await commits.abandon();
    throw error;
  }
  return commits.settle(returned);
}
