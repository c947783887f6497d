import type { Runtime } from "../../app/runtime/runtime.ts";
import type { RequestScope } from "../../app/runtime/scope.ts";
import { runInScope } from "../../app/runtime/scoped-run.ts";
import { FrameworkError } from "../../base/errors/errors.ts";
import { runWithStore } from "../../base/request/ambient.ts";
import type { MiddyFunction, MiddyPlugin, Mode } from "./lazy-mode.ts";
import { timeoutMessage } from "./middy-error.ts";
import { logLate } from "./run-middlewares.ts";

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
      // Metrics are written before the process may be frozen.
      runtime.metrics === undefined
        ? answerOf(event, context)
        : answerOf(event, context).finally(runtime.metrics.flush);
  };
}

/** Members of an invocation's context, which a test may leave out. */
interface GivenContext {
  readonly tenantId?: unknown;
  readonly getRemainingTimeInMillis?: unknown;
}

/** Returns the tenant in an invocation's context: the one that Lambda invoked the function for. */
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
        // The run records its outcome shortly after, while the response is on its way.
        const { metrics } = scope.runtime;
        if (metrics?.flush !== undefined) setImmediate(metrics.flush);
      }),
  };
}

/**
 * Deadline of an invocation. Those that are watched form a doubly linked list, which has the
 * cheapest insertion and removal. New deadlines go to the front.
 */
interface Deadline {
  /** Time until Lambda ends the process, in milliseconds. */
  readonly leftMs: number;
  readonly delayMs: number;
  readonly dueMs: number;
  /** Aborts at the deadline, if it is watched. Its reason is the error of the 504 response. */
  readonly signal: AbortSignal;
  readonly controller: AbortController;
  listener: TimeoutListener | undefined;
  before: Deadline | undefined;
  after: Deadline | undefined;
}

interface TimeoutListener {
  /**
   * Called at the deadline.
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
/** Middy's default, in milliseconds. It is indistinguishable from an explicit value. */
const middyMarginMs = 5;
/**
 * Longest time between two checks, in milliseconds. The timer may keep an idle process running for
 * this long.
 */
const lookMs = 500;

/**
 * Creates the deadlines of one function. They share one timer, which an invocation sets and clears
 * only if it is due first. Per invocation, either call took a tenth to a quarter of its time
 * (`wrapped-no-log` in `bench/results.json`). A Set was as slow, because V8 reallocates it whenever
 * it becomes empty. The timer keeps the process running while an invocation is in progress.
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
