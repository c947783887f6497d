import { type ContextParts, createContexts } from "../../app/ctx/context.ts";
import { run } from "../../app/ctx/run.ts";
import type { Effects } from "../../app/handlers/effects.ts";
import type { PipelineContext } from "../../app/handlers/pipeline-context.ts";
import { causeOf } from "../../app/run/write.ts";
import type { Adapters } from "../../app/runtime/adapters.ts";
import type { RequestScope } from "../../app/runtime/scope.ts";

/** Creates a `ctx` outside of a handler: each call with effects is a run that commits at once. */
export function testContext(scope: RequestScope, adapters: Adapters): PipelineContext {
  const runAlone = async <Result>(
    handle: (ctx: PipelineContext) => Promise<Result>,
  ): Promise<Result> => {
    let result: Result | undefined;
    await run<unknown>(scope, adapters, {
      logPrefix: "once",
      claim: undefined,
      cause: causeOf(scope),
      handle: async (ctx) => {
        result = await handle(ctx);
      },
    });
    return result as Result; // safe cast: a run that does not throw has called `handle`
  };
  const effects: Effects = {
    // Safe casts: the type of the test's `ctx` checks names; here, a name is any string.
    publish: (type, payload) => runAlone((ctx) => ctx.publish(type as never, payload as never)),
    enqueue: (name, payload, options) =>
      runAlone((ctx) => ctx.enqueue(name as never, payload as never, options)),
    unschedule: (jobId) => runAlone((ctx) => ctx.unschedule(jobId)),
    step: (name, options, call) => runAlone((ctx) => ctx.step(name, options, call)),
    deliver: (...message) => runAlone((ctx) => ctx.delivery.send(...message)),
  };
  const commits: ContextParts["commits"] = {
    start: (_caller, work) => work(effects),
    commit: (_caller, items, result) => runAlone((ctx) => ctx.commit(items, result)),
  };
  return createContexts(scope, adapters, { commits }).of("handler");
}
