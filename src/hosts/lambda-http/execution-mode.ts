import type { Runtime } from "../../app/runtime/runtime.ts";
import { type RequestScope, runInScope } from "../../app/runtime/scope.ts";
import { FrameworkError } from "../../base/errors/errors.ts";
import { runWithStore } from "../../base/request/ambient.ts";
import type { MiddyFunction, MiddyPlugin, Mode } from "./lazy-mode.ts";
import { timeoutMessage } from "./middy-error.ts";
import { logLate } from "./run-middlewares.ts";

/** Invocation of a function: runs it and turns its outcome into an answer. */
export interface Exchange<Answer> {
  /** Headers of the event before any middleware can change them, with names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  run(scope: RequestScope, middy: MiddyFunction): Promise<Answer>;
  /** Returns the answer at the deadline. Without this method, `fail` answers. */
  timedOut?(middy: MiddyFunction): Promise<Answer>;
  /**
   * Returns the answer to an error.
   *
   * @throws the error itself if the source of the event must receive it.
   */
  fail(error: unknown, scope: RequestScope): Answer;
  /** Returns the result of the invocation. Called once. */
  finish(answer: Answer, scope: RequestScope): unknown;
}

export interface Invocation {
  readonly event: unknown;
  readonly context: unknown;
  /** Tenant of the execution environment, if the function's tenant isolation mode is on. */
  readonly isolatedTo: string | undefined;
}

/**
 * Creates the Middy execution mode that runs all middlewares and the handler inside the request's
 * scope. Every response needs its request ID and error body, even if a `before` hook answers early
 * and Middy skips every `after` hook, so the steps for all responses are here.
 *
 * @param open - reads the event once, before any middleware can change it. If it throws, Lambda
 * receives the error.
 */
export function scopeMode<Answer>(
  runtime: Runtime,
  open: (invocation: Invocation, middy: MiddyFunction) => Exchange<Answer>,
): Mode {
  return (middy) => {
    const { plugin } = middy;
    const deadlines = createDeadlines(plugin);
    // Middy's own early timeout skips `before` hooks, and runs `after` hooks during the handler.
    plugin.timeoutEarly = false;

    const answerOf = (event: unknown, context: unknown): Promise<unknown> =>
      // The run or its deadline settles this one promise. `Promise.race` would create three more.
      new Promise((resolve, reject) => {
        if (runtime.log.isSampling) runtime.log.refreshSampling();
        const nowMs = Date.now();
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
      // Metrics are flushed with the answer, because Lambda may then freeze the process.
      runtime.metrics === undefined
        ? answerOf(event, context)
        : answerOf(event, context).finally(runtime.metrics.flush);
  };
}

/** Invocation's context, which a test may leave incomplete. */
interface GivenContext {
  readonly tenantId?: unknown;
  readonly getRemainingTimeInMillis?: unknown;
}

function tenantOf(context: unknown): string | undefined {
  const { tenantId }: GivenContext = Object(context);
  return typeof tenantId === "string" && tenantId !== "" ? tenantId : undefined;
}

export function hasMiddlewares({ befores, afters, onErrors }: MiddyFunction): boolean {
  return befores.length + afters.length + onErrors.length > 0;
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
        // The aborted run records its metrics after the answer, so they are flushed in a later
        // turn.
        const { metrics } = scope.runtime;
        if (metrics?.flush !== undefined) setImmediate(metrics.flush);
      }),
  };
}

/**
 * Deadline of an invocation. Watched deadlines form a doubly linked list, newest first, because its
 * insertions and removals are the cheapest.
 */
interface Deadline {
  readonly leftMs: number;
  readonly delayMs: number;
  readonly dueMs: number;
  /** Signal that aborts at a watched deadline. Its reason is the error of the 504 response. */
  readonly signal: AbortSignal;
  readonly controller: AbortController;
  listener: TimeoutListener | undefined;
  before: Deadline | undefined;
  after: Deadline | undefined;
}

interface TimeoutListener {
  /**
   * @param afterMs - time that the invocation had, in milliseconds.
   * @param abort - aborts the signal. Its listeners run synchronously, so call it within the
   * invocation's scope.
   */
  timedOut(timeout: FrameworkError, afterMs: number, abort: () => void): void;
}

interface Deadlines {
  /**
   * Returns the deadline of an invocation, or `undefined` if its context has no time limit, as in
   * tests.
   */
  of(context: unknown, nowMs: number): Deadline | undefined;
  /** Starts watching a deadline, until `leave`. */
  enter(deadline: Deadline, listener: TimeoutListener): void;
  /** Stops watching a deadline, and returns whether it had already passed. */
  leave(deadline: Deadline): boolean;
}

/** Default time reserved for sending the response, in milliseconds. */
const defaultMarginMs = 50;
/**
 * Middy's default margin, in milliseconds. An explicit 5 is indistinguishable and also becomes 50.
 */
const middyMarginMs = 5;
/**
 * Longest time between two checks, in milliseconds. The timer may keep an idle process running for
 * this long.
 */
const lookMs = 500;

/**
 * Creates the deadlines of one function. They share one timer, which an invocation replaces only if
 * its deadline is the first: setting or clearing a timer took a tenth to a quarter of an
 * invocation's time (`wrapped-no-log` in `bench/results.json`). A `Set` of deadlines was as slow,
 * because V8 reallocates it whenever it becomes empty. The timer keeps the process running during
 * an invocation.
 *
 * @param plugin - if it disables the early timeout, deadlines are not watched and no signal aborts.
 */
function createDeadlines({
  timeoutEarly,
  timeoutEarlyInMillis,
}: Pick<MiddyPlugin, "timeoutEarly" | "timeoutEarlyInMillis">): Deadlines {
  const marginMs = timeoutEarlyInMillis === middyMarginMs ? defaultMarginMs : timeoutEarlyInMillis;
  let first: Deadline | undefined;
  let timer: NodeJS.Timeout | undefined;
  let timerDueMs = 0;

  const arm = (dueMs: number) => {
    if (timer !== undefined) clearTimeout(timer);
    const nowMs = Date.now();
    timerDueMs = Math.min(Math.max(dueMs, nowMs), nowMs + lookMs);
    timer = setTimeout(look, timerDueMs - nowMs);
  };
  const look = () => {
    timer = undefined;
    const nowMs = Date.now();
    let nextMs = Number.POSITIVE_INFINITY;
    const due: Deadline[] = [];
    for (let one = first; one !== undefined; one = one.after) {
      if (one.dueMs <= nowMs) due.push(one);
      else nextMs = Math.min(nextMs, one.dueMs);
    }
    if (nextMs < Number.POSITIVE_INFINITY) arm(nextMs);
    for (const one of due) {
      unlink(one);
      const timeout = new FrameworkError("timeout", timeoutMessage);
      one.listener?.timedOut(timeout, one.delayMs, () => one.controller.abort(timeout));
    }
  };
  const unlink = (one: Deadline) => {
    if (one.before !== undefined) one.before.after = one.after;
    else if (first === one) first = one.after;
    if (one.after !== undefined) one.after.before = one.before;
    one.before = undefined;
    one.after = undefined;
  };
  return {
    of: (context, nowMs) => {
      const { getRemainingTimeInMillis: remaining }: GivenContext = Object(context);
      if (typeof remaining !== "function") return undefined;
      const leftMs: unknown = remaining.call(context);
      if (typeof leftMs !== "number" || !Number.isFinite(leftMs)) return undefined;
      const delayMs = Math.max(leftMs - marginMs, 0);
      const controller = new AbortController();
      return {
        leftMs,
        delayMs,
        dueMs: nowMs + delayMs,
        signal: controller.signal,
        controller,
        listener: undefined,
        before: undefined,
        after: undefined,
      };
    },
    enter: (one, listener) => {
      if (!timeoutEarly) return;
      one.listener = listener;
      one.after = first;
      if (first !== undefined) first.before = one;
      first = one;
      if (timer === undefined || one.dueMs < timerDueMs) arm(one.dueMs);
    },
    leave: (deadline) => {
      unlink(deadline);
      return deadline.signal.aborted;
    },
  };
}
