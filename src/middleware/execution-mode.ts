import type middy from "@middy/core";
import type { Runtime } from "../app/runtime.ts";
import { type RequestScope, runInScope, type ScopeFacts } from "./scope.ts";

/** How a kind of event becomes a scope, and how results and errors of the run become answers. */
export interface EventCodec<Event, Result> {
  /** @throws Error for an event of another kind; it is rethrown to Lambda. */
  facts(event: Event): ScopeFacts;
  fail(error: unknown, scope: RequestScope, event: Event): Result;
  finish(result: Result, scope: RequestScope, event: Event): Result;
  /** The handler takes nothing of Middy's: where no middleware is used it runs without Middy's request around it. */
  readonly isDirect?: boolean;
}

type ExecutionMode = NonNullable<middy.PluginObject["executionMode"]>;

type Run = (
  request: { event: unknown; context: unknown; [name: string]: unknown },
  befores: unknown[],
  handler: unknown,
  afters: unknown[],
  onErrors: unknown[],
  plugin: MiddyPlugin,
) => Promise<unknown>;

type Direct = (event: unknown, context: unknown) => unknown;

interface MiddyPlugin {
  timeoutEarly: boolean;
  requestStart(request: unknown): void;
  requestEnd(request: unknown): unknown;
}

/**
 * The Middy execution mode: runs the whole chain of middlewares and the handler inside the
 * request's scope. A response needs its ID and its error body also where a `before` answers
 * early, and then Middy skips every `after`; so what holds for all responses is done here.
 */
export function scopeMode<Event, Result>(runtime: () => Runtime, codec: EventCodec<Event, Result>): ExecutionMode {
  const mode = (
    { middyRequest, runRequest }: { middyRequest: (event: Event, context: unknown) => Parameters<Run>[0]; runRequest: Run },
    befores: unknown[],
    initialHandler: unknown,
    afters: unknown[],
    onErrors: unknown[],
    plugin: MiddyPlugin,
  ) => {
    let handler = initialHandler;
    plugin.timeoutEarly = false; // Middy's timer costs 600 ns a call and does not cover `before`s

    const answer = async (scope: RequestScope, event: Event, context: unknown): Promise<Result> => {
      scope.hasMiddlewares = befores.length + afters.length + onErrors.length > 0;
      const isDirect = codec.isDirect === true && !scope.hasMiddlewares;
      const request = isDirect ? undefined : middyRequest(event, context);
      let result: Result;
      try {
        // Safe: Middy's own types promise the handler's result type here.
        result = (await (request === undefined ? (handler as Direct)(event, context) : runAll(request))) as Result;
      } catch (error) {
        result = codec.fail(error, scope, event);
      }
      if (request !== undefined) await plugin.requestEnd(request);
      return codec.finish(result, scope, event);
    };
    const runAll = (request: Parameters<Run>[0]) => {
      plugin.requestStart(request);
      return runRequest(request, befores, handler, afters, onErrors, plugin);
    };
    const keelsonHandler = (event: Event, context: unknown): Promise<Result> => {
      try {
        return runInScope(runtime(), codec.facts(event), (scope) => answer(scope, event, context));
      } catch (error) {
        return Promise.reject(error);
      }
    };
    keelsonHandler.handler = (replacement: unknown) => {
      handler = replacement;
      return keelsonHandler;
    };
    return keelsonHandler;
  };
  // Middy types a mode as `() => void`; it calls it with the six arguments above.
  return mode as unknown as ExecutionMode;
}
