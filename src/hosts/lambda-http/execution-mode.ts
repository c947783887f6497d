import type { Runtime } from "../../app/runtime/runtime.ts";
import type { RequestScope } from "../../app/runtime/scope.ts";
import { runInScope, type ScopeFacts } from "../../app/runtime/scoped-run.ts";
import { describeError } from "../../base/errors/describe.ts";
import { runWithStore } from "../../base/request/ambient.ts";
import { logAnswered, noting } from "./answered-error.ts";
import { createDeadlines, type EarlyTimeout, type TimeoutListener } from "./deadline.ts";
import type { ExecutionMode } from "./middleware.ts";
import { type ClaimDescription, takeDescription } from "./write-once.ts";

/**
 * Codec of one kind of event: converts it to a scope, and results and errors of the run to
 * responses.
 */
export interface EventCodec<Event, Result, Facts extends ScopeFacts> {
  /**
   * Reads the event once, before any middleware can change it.
   *
   * @throws Error for an event of another kind; Lambda receives the error.
   */
  facts(event: Event, invocation: Invocation): Facts;
  fail(error: unknown, scope: RequestScope, facts: Facts): Result;
  finish(result: Result, scope: RequestScope, facts: Facts): Result;
  /**
   * Answers an event after the middlewares, in place of the function's handler. It needs neither
   * Middy's request nor its options, so without middlewares it runs without them.
   */
  handle?(scope: RequestScope, event: Event, facts: Facts): Promise<Result>;
  /**
   * Runs the middlewares and the handler with the steps around them. A codec has `handle` or
   * `around`.
   */
  around?(scope: RequestScope, facts: Facts, run: MiddyRun<Result>): Promise<Result>;
}

export interface MiddyRun<Result> {
  /** Lambda context that the handler receives as its second argument. May be extended. */
  readonly context: Record<string, unknown>;
  /** Claim for retries of the handler, if a `writeOnce()` describes one. */
  readonly claim: ClaimDescription | undefined;
  /** @param signal - signal in the handler's third argument; default: one that never aborts. */
  run(signal: AbortSignal | undefined): Promise<Result>;
}

export interface Invocation {
  readonly signal: AbortSignal | undefined;
  /** Time at which Lambda ends the process, in epoch milliseconds. */
  readonly deadlineMs: number | undefined;
  /** Tenant of the function's environment, if its tenant isolation mode is on. */
  readonly isolatedTo: string | undefined;
  /** Time of arrival, in epoch milliseconds. */
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
 * Creates the Middy execution mode: runs all middlewares and the handler inside the request's
 * scope. Every response needs its ID and its error body, even if a `before` answers early. Middy
 * then skips every `after`, so the steps for all responses are here.
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
    plugin.timeoutEarly = false; // Middy's skips `before`s and runs `after`s during the handler

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
      const own = (context ?? {}) as Record<string, unknown>; // middlewares extend it in place too
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
      // The run or its deadline settles one promise. Promise.race would create three more.
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
      // Metrics are written before the process may be frozen.
      runtime.metrics === undefined
        ? answerOf(event, context)
        : answerOf(event, context).finally(runtime.metrics.flush);
    return keelsonHandler;
  };
  // Middy types a mode as `() => void`, and calls it with the six arguments above.
  return mode as unknown as ExecutionMode;
}

/** Returns the tenant in an invocation's context: the one that Lambda invoked the function for. */
function tenantOf(context: unknown): string | undefined {
  const { tenantId } = (context ?? {}) as { readonly tenantId?: unknown };
  return typeof tenantId === "string" && tenantId !== "" ? tenantId : undefined;
}

/**
 * Ends a failed request like Middy: an error of the end becomes the `cause` of the request's error,
 * if that can carry one.
 */
async function endFailed(plugin: MiddyPlugin, request: unknown, error: unknown): Promise<void> {
  try {
    await ended(plugin, request);
  } catch (endError) {
    const { cause } = Object(error) as { readonly cause?: unknown };
    if (typeof error === "object" && error !== null && (cause === undefined || cause === null))
      Reflect.set(error, "cause", endError);
  }
}

/** Middy's hooks may return any value. Only a promise is awaited. */
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
        // The run records its outcome shortly after, while the response is on its way.
        const { metrics } = scope.runtime;
        if (metrics?.flush !== undefined) setImmediate(metrics.flush);
      }),
  };
}

/**
 * Answers with Middy's `timeoutEarlyResponse`. Never rejects: an error of that option is answered
 * too.
 */
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
