import type { Runtime } from "../../app/runtime/runtime.ts";
import { type RequestScope, runInScope, type ScopeFacts } from "../../app/runtime/scope.ts";
import { describeError } from "../../base/errors/describe.ts";
import { runWithStore } from "../../base/request/ambient.ts";
import { logAnswered, noting } from "./answered-error.ts";
import { createDeadlines, type EarlyTimeout, type TimeoutListener } from "./deadline.ts";
import type { ExecutionMode } from "./middleware.ts";
import { type ClaimDescription, takeDescription } from "./write-once.ts";

/** How a kind of event becomes a scope, and how results and errors of the run become answers. */
export interface EventCodec<Event, Result, Facts extends ScopeFacts> {
  /**
   * Read once, before any middleware can change the event.
   *
   * @throws Error for an event of another kind; it is rethrown to Lambda.
   */
  facts(event: Event, invocation: Invocation): Facts;
  fail(error: unknown, scope: RequestScope, facts: Facts): Result;
  finish(result: Result, scope: RequestScope, facts: Facts): Result;
  /**
   * Answers an event, as it is behind the middlewares, in place of the function's handler. It takes nothing of Middy's, and who
   * made the function none of Middy's options: where no middleware is used it runs without Middy's request around it.
   */
  handle?(scope: RequestScope, event: Event, facts: Facts): Promise<Result>;
  /** Runs the middlewares and the handler, and does what belongs around them; default: nothing does. */
  around?(scope: RequestScope, facts: Facts, run: MiddyRun<Result>): Promise<Result>;
}

/** The middlewares and the handler of one invocation. */
export interface MiddyRun<Result> {
  /** What Lambda hands the handler as its second argument, for more to be added to it. */
  readonly context: Record<string, unknown>;
  /** How the handler's repeats are claimed, where a `writeOnce()` says so. */
  readonly claim: ClaimDescription | undefined;
  /** @param signal - what the handler finds in its third argument; default: one that never aborts. */
  run(signal: AbortSignal | undefined): Promise<Result>;
}

/** What an event is received with. */
export interface Invocation {
  readonly signal: AbortSignal | undefined;
  /** When the process will be gone, in milliseconds since the epoch. */
  readonly deadlineMs: number | undefined;
  /** The tenant that the function's environment is kept for, where its isolation mode is on. */
  readonly isolatedTo: string | undefined;
  /** When it was received, in milliseconds since the epoch. */
  readonly nowMs: number;
}

type Run = (
  request: { event: unknown; context: unknown; [name: string]: unknown },
  befores: unknown[],
  handler: unknown,
  afters: unknown[],
  onErrors: unknown[],
  plugin: MiddyPlugin,
) => Promise<unknown>;

type Handler = (event: unknown, context: unknown, options?: unknown) => unknown;

interface MiddyPlugin extends EarlyTimeout {
  timeoutEarly: boolean;
  timeoutEarlyResponse(): unknown;
  requestStart(request: unknown): void;
  requestEnd(request: unknown): unknown;
}

/**
 * The Middy execution mode: runs the whole chain of middlewares and the handler inside the
 * request's scope. A response needs its ID and its error body also where a `before` answers
 * early, and then Middy skips every `after`; so what holds for all responses is done here.
 */
export function scopeMode<Event, Result, Facts extends ScopeFacts>(
  runtime: Runtime,
  codec: EventCodec<Event, Result, Facts>,
): ExecutionMode {
  const mode = (
    {
      middyRequest,
      runRequest,
    }: { middyRequest: (event: Event, context: unknown) => Parameters<Run>[0]; runRequest: Run },
    befores: unknown[],
    handler: Handler,
    afters: unknown[],
    onErrors: unknown[],
    plugin: MiddyPlugin,
  ) => {
    const deadlines = createDeadlines(plugin);
    plugin.timeoutEarly = false; // it does not cover `before`s, and runs the `after`s while the handler goes on

    const handle = codec.handle?.bind(codec);
    const runAll = async (
      scope: RequestScope,
      event: Event,
      context: unknown,
      befores: unknown[],
      called: Handler,
    ): Promise<unknown> => {
      const request = middyRequest(event, context);
      plugin.requestStart(request);
      let failed: { readonly error: unknown } | undefined;
      const noted = noting(onErrors, (error) => {
        failed = { error };
      });
      let result: unknown;
      try {
        result = await runRequest(request, befores, called, afters, noted, plugin);
      } catch (error) {
        await endFailed(plugin, request, error);
        throw error;
      }
      if (failed !== undefined) {
        if (scope.signal?.aborted) logLate(scope, failed.error);
        else logAnswered(scope, failed.error, result);
      }
      await ended(plugin, request);
      return result;
    };
    // Safe, here and below: Middy's own types promise the handler's result type.
    const run = (
      scope: RequestScope,
      facts: Facts,
      event: Event,
      context: unknown,
    ): Promise<Result> => {
      scope.hasMiddlewares =
        handle === undefined || befores.length + afters.length + onErrors.length > 0;
      if (handle !== undefined) {
        if (!scope.hasMiddlewares) return handle(scope, event, facts);
        return runAll(scope, event, context, befores, (event) =>
          handle(scope, event as Event, facts),
        ) as Promise<Result>;
      }
      const own = (context ?? {}) as Record<string, unknown>; // as middlewares of Middy do, it is added to
      const { description: claim, befores: others } = takeDescription(befores);
      // Safe: a codec has `handle` or `around`.
      const around = codec.around as NonNullable<typeof codec.around>;
      return around(scope, facts, {
        context: own,
        claim,
        run: (signal) => {
          const called: Handler =
            signal === undefined
              ? handler
              : (event, context) => handler(event, context, { signal });
          return runAll(scope, event, own, others, called) as Promise<Result>;
        },
      });
    };
    const answerOf = (event: Event, context: unknown): Promise<Result> =>
      // One promise that the run settles or its deadline: a race of two would take three more.
      new Promise((resolve, reject) => {
        if (runtime.log.isSampling) runtime.log.refreshSampling();
        const nowMs = runtime.clock.now();
        const deadline = deadlines.of(context, nowMs);
        const deadlineMs = deadline === undefined ? undefined : nowMs + deadline.leftMs;
        const facts = codec.facts(event, {
          signal: deadline?.signal,
          deadlineMs,
          isolatedTo: tenantOf(context),
          nowMs,
        });
        void runInScope(runtime, facts, async (scope) => {
          const answerError = (error: unknown) => {
            try {
              resolve(codec.finish(codec.fail(error, scope, facts), scope, facts));
            } catch (thrown) {
              reject(thrown);
            }
          };
          try {
            if (deadline !== undefined) {
              const early =
                handle !== undefined
                  ? answerError
                  : () =>
                      answerEarly(
                        plugin,
                        (result) => resolve(codec.finish(result as Result, scope, facts)),
                        answerError,
                      );
              deadlines.enter(deadline, timeoutListener(scope, early));
            }
            const result = await run(scope, facts, event, context);
            if (deadline === undefined || !deadlines.leave(deadline))
              resolve(codec.finish(result, scope, facts));
          } catch (error) {
            if (deadline === undefined || !deadlines.leave(deadline)) answerError(error);
            else logLate(scope, error);
          }
        });
      });
    const keelsonHandler = (event: Event, context: unknown): Promise<Result> =>
      // What was measured is written before the process may be frozen.
      runtime.metrics === undefined
        ? answerOf(event, context)
        : answerOf(event, context).finally(runtime.metrics.flush);
    return keelsonHandler;
  };
  // Middy types a mode as `() => void`; it calls it with the six arguments above.
  return mode as unknown as ExecutionMode;
}

/** The tenant that an invocation's context names: Lambda hands over the one that the function was invoked for. */
function tenantOf(context: unknown): string | undefined {
  const { tenantId } = (context ?? {}) as { readonly tenantId?: unknown };
  return typeof tenantId === "string" && tenantId !== "" ? tenantId : undefined;
}

/** As Middy has it: what fails at the end of a request that has failed is the cause of its error, where that can carry one. */
async function endFailed(plugin: MiddyPlugin, request: unknown, error: unknown): Promise<void> {
  try {
    await ended(plugin, request);
  } catch (endError) {
    const { cause } = Object(error) as { readonly cause?: unknown };
    if (typeof error === "object" && error !== null && (cause === undefined || cause === null))
      Reflect.set(error, "cause", endError);
  }
}

/** Middy's hooks may return anything; only a promise is waited for. */
function ended(plugin: MiddyPlugin, request: unknown): unknown {
  const end = plugin.requestEnd(request);
  return end instanceof Promise ? end : undefined;
}

function timeoutListener(
  scope: RequestScope,
  answerError: (error: unknown) => void,
): TimeoutListener {
  return {
    timedOut: (timeout, afterMs, abort) =>
      runWithStore(scope, () => {
        scope.log.warn("handler.abandoned", { afterMs });
        abort();
        answerError(timeout);
        // How the run ends is known a moment later, while the answer is on its way.
        const { metrics } = scope.runtime;
        if (metrics?.flush !== undefined) setImmediate(metrics.flush);
      }),
  };
}

/** Lets Middy's option answer. It never rejects: what the option throws is answered too. */
async function answerEarly(
  plugin: MiddyPlugin,
  answer: (result: unknown) => void,
  answerError: (error: unknown) => void,
): Promise<void> {
  try {
    answer(await plugin.timeoutEarlyResponse());
  } catch (error) {
    answerError(error);
  }
}

function logLate(scope: RequestScope, error: unknown): void {
  const { data } = describeError(error, {
    requestId: scope.requestId,
    environment: "production",
  }).log;
  scope.log.debug("handler.failed_late", data);
}
