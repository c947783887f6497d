import type { Runtime } from "../../app/runtime/runtime.ts";
import type { RequestScope } from "../../app/runtime/scope.ts";
import { runInScope } from "../../app/runtime/scoped-run.ts";
import { describeError } from "../../base/errors/describe.ts";
import { runWithStore } from "../../base/request/ambient.ts";
import { createDeadlines, type TimeoutListener } from "./deadline.ts";
import type {
  MiddyFunction,
  MiddyHandler,
  MiddyHook,
  MiddyPlugin,
  MiddyRequest,
  Mode,
} from "./lazy-mode.ts";
import { logAnswered, noting } from "./middy-error.ts";

/** Invocation of a function, and its answer in the making. */
export interface Exchange<Answer> {
  /** Headers of the event before any middleware can change them, with names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  run(scope: RequestScope, middy: MiddyFunction): Promise<Answer>;
  /** Answers at the deadline. Default: the answer of `fail`. */
  timedOut?(middy: MiddyFunction): Promise<Answer>;
  /** @throws the error if its event's source has to know it. */
  fail(error: unknown, scope: RequestScope): Answer;
  /** Returns the result of the invocation. Called once. */
  finish(answer: Answer, scope: RequestScope): unknown;
}

export interface Invocation {
  readonly event: unknown;
  readonly context: unknown;
  /** Tenant of the function's environment, if its tenant isolation mode is on. */
  readonly isolatedTo: string | undefined;
}

/**
 * Creates the Middy execution mode: runs all middlewares and the handler inside the request's
 * scope. Every response needs its ID and its error body, even if a `before` answers early. Middy
 * then skips every `after`, so the steps for all responses are here.
 *
 * @param open - reads the event once, before any middleware can change it. Lambda receives an error
 * that it throws.
 */
export function scopeMode<Answer>(
  runtime: Runtime,
  open: (invocation: Invocation, middy: MiddyFunction) => Exchange<Answer>,
): Mode {
  return (middy) => {
    const { plugin } = middy;
    const deadlines = createDeadlines(plugin);
    plugin.timeoutEarly = false; // Middy's skips `before`s and runs `after`s during the handler

    const answerOf = (event: unknown, context: unknown): Promise<unknown> =>
      // The run or its deadline settles one promise. Promise.race would create three more.
      new Promise((resolve, reject) => {
        if (runtime.log.isSampling) runtime.log.refreshSampling();
        const nowMs = runtime.clock.now();
        const deadline = deadlines.of(context, nowMs);
        const isolatedTo = tenantOf(context);
        const exchange = open({ event, context, isolatedTo }, middy);
        const facts = {
          headers: exchange.headers,
          signal: deadline?.signal,
          deadlineMs: deadline === undefined ? undefined : nowMs + deadline.leftMs,
          isolatedTo,
          nowMs,
        };
        void runInScope(runtime, facts, async (scope) => {
          const answerError = (error: unknown) => {
            try {
              resolve(exchange.finish(exchange.fail(error, scope), scope));
            } catch (thrown) {
              reject(thrown);
            }
          };
          const answerTimeout = (timeout: unknown) => {
            if (exchange.timedOut === undefined) answerError(timeout);
            else
              exchange
                .timedOut(middy)
                .then((answer) => resolve(exchange.finish(answer, scope)))
                .catch(answerError);
          };
          try {
            if (deadline !== undefined)
              deadlines.enter(deadline, timeoutListener(scope, answerTimeout));
            const answer = await exchange.run(scope, middy);
            if (deadline === undefined || !deadlines.leave(deadline))
              resolve(exchange.finish(answer, scope));
          } catch (error) {
            if (deadline === undefined || !deadlines.leave(deadline)) answerError(error);
            else logLate(scope, error);
          }
        });
      });
    return (event, context) =>
      // Metrics are written before the process may be frozen.
      runtime.metrics === undefined
        ? answerOf(event, context)
        : answerOf(event, context).finally(runtime.metrics.flush);
  };
}

/** Returns the tenant in an invocation's context: the one that Lambda invoked the function for. */
function tenantOf(context: unknown): string | undefined {
  const { tenantId } = (context ?? {}) as { readonly tenantId?: unknown };
  return typeof tenantId === "string" && tenantId !== "" ? tenantId : undefined;
}

export function hasMiddlewares({ befores, afters, onErrors }: MiddyFunction): boolean {
  return befores.length + afters.length + onErrors.length > 0;
}

/** Part of a Middy function that an exchange runs. */
export interface MiddlewareRun {
  readonly event: unknown;
  readonly context: unknown;
  readonly befores: readonly MiddyHook[];
  /** Called by Middy in place of the function's own handler. */
  readonly handler: MiddyHandler;
}

/** Runs a function's middlewares around a handler. Logs an error that a middleware answers. */
export async function runMiddlewares(
  { tools, afters, onErrors, plugin }: MiddyFunction,
  scope: RequestScope,
  { event, context, befores, handler }: MiddlewareRun,
): Promise<unknown> {
  const request = tools.middyRequest(event, context);
  plugin.requestStart(request);
  let failed: { readonly error: unknown } | undefined;
  const noted = noting(onErrors, (error) => {
    failed = { error };
  });
  let result: unknown;
  try {
    result = await tools.runRequest(request, befores, handler, afters, noted, plugin);
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
}

/**
 * Ends a failed request like Middy: an error of the end becomes the `cause` of the request's error,
 * if that can carry one.
 */
async function endFailed(
  plugin: MiddyPlugin,
  request: MiddyRequest,
  error: unknown,
): Promise<void> {
  try {
    await ended(plugin, request);
  } catch (endError) {
    const { cause } = Object(error) as { readonly cause?: unknown };
    if (typeof error === "object" && error !== null && (cause === undefined || cause === null))
      Reflect.set(error, "cause", endError);
  }
}

/** Middy's hooks may return any value. Only a promise is awaited. */
function ended(plugin: MiddyPlugin, request: MiddyRequest): unknown {
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

function logLate(scope: RequestScope, error: unknown): void {
  const { data } = describeError(error, {
    requestId: scope.requestId,
    environment: "production",
  }).log;
  scope.log.debug("handler.failed_late", data);
}
