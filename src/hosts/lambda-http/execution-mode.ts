import type { Runtime } from "../../app/runtime/runtime.ts";
import { type RequestScope, runInScope } from "../../app/runtime/scope.ts";
import { FrameworkError } from "../../base/errors/errors.ts";
import { runWithStore } from "../../base/request/ambient.ts";
import type { MiddyFunction, MiddyPlugin, Mode, ResponseStream } from "./lazy-mode.ts";
import { logLate, timeoutMessage } from "./run-middlewares.ts";

export interface Exchange<Answer> {
  /** As sent, before any middleware can change them, with names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  run(scope: RequestScope, middy: MiddyFunction): Promise<Answer>;
  /** Returns the answer at the deadline. Without this method, `fail` answers. */
  timedOut?(middy: MiddyFunction): Promise<Answer>;
  /** @throws the error itself if the source of the event must receive it. */
  fail(error: unknown, scope: RequestScope): Answer;
  /** Called once. */
  finish(answer: Answer, scope: RequestScope): unknown;
  /** Calls back when the client leaves a response that streams. */
  whenLeft?(abort: (reason: unknown) => void): void;
}

export interface Invocation {
  readonly event: unknown;
  readonly context: unknown;
  /** Tenant of the execution environment, if the function's tenant isolation mode is on. */
  readonly isolatedTo: string | undefined;
  /** Takes the response of a streaming function. */
  readonly stream: ResponseStream | undefined;
}

/**
 * Creates the Middy execution mode that runs all middlewares and the handler inside the request's
 * scope. The request ID and the error body of every response are set here, because Middy skips
 * every `after` hook if a `before` hook answers.
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

    const answerOf = (
      event: unknown,
      context: unknown,
      stream: ResponseStream | undefined,
    ): Promise<unknown> =>
      // The run or its deadline settles this one promise. `Promise.race` would create three more.
      new Promise((resolve, reject) => {
        if (runtime.log.isSampling) runtime.log.refreshSampling();
        const nowMs = Date.now();
        const deadline = deadlines.of(context);
        const isolatedTo = tenantOf(context);
        const exchange = open({ event, context, isolatedTo, stream }, middy);
        const controller = deadline?.controller ?? (exchange.whenLeft && new AbortController());
        if (controller !== undefined) exchange.whenLeft?.((reason) => controller.abort(reason));
        const facts = {
          headers: exchange.headers,
          signal: controller?.signal,
          deadlineMs: deadline === undefined ? undefined : nowMs + deadline.leftMs,
          isolatedTo,
          nowMs,
        };
        void runInScope(runtime, facts, async (scope) => {
          try {
            // Its closures are created at the deadline, which hardly any run reaches.
            if (deadline !== undefined)
              deadlines.enter(deadline, () => {
                const answerError = errorAnswer(exchange, scope, resolve, reject);
                abandon(scope, deadline, (timeout) => {
                  if (exchange.timedOut === undefined) return answerError(timeout);
                  exchange
                    .timedOut(middy)
                    .then((answer) => resolve(exchange.finish(answer, scope)))
                    .catch(answerError);
                });
              });
            const answer = await exchange.run(scope, middy);
            if (!deadlines.leave(deadline)) resolve(exchange.finish(answer, scope));
          } catch (error) {
            if (deadlines.leave(deadline)) logLate(scope, error);
            else errorAnswer(exchange, scope, resolve, reject)(error);
          } finally {
            scope.isHandlerOver = true;
          }
        });
      });
    return (event, context, stream) =>
      // Metrics are flushed with the answer, because Lambda may then freeze the process.
      runtime.metrics === undefined
        ? answerOf(event, context, stream)
        : answerOf(event, context, stream).finally(runtime.metrics.flush);
  };
}

/** A test may leave the context incomplete. */
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

function errorAnswer<Answer>(
  exchange: Exchange<Answer>,
  scope: RequestScope,
  resolve: (result: unknown) => void,
  reject: (error: unknown) => void,
): (error: unknown) => void {
  return (error) => {
    try {
      resolve(exchange.finish(exchange.fail(error, scope), scope));
    } catch (thrown) {
      reject(thrown);
    }
  };
}

/** Answers a run whose deadline has passed. */
function abandon(
  scope: RequestScope,
  { delayMs, controller }: Deadline,
  answerTimeout: (timeout: unknown) => void,
): void {
  runWithStore(scope, () => {
    const timeout = new FrameworkError("timeout", timeoutMessage);
    scope.log.warn("handler.abandoned", { afterMs: delayMs });
    controller.abort(timeout); // runs its listeners synchronously, hence within the scope
    answerTimeout(timeout);
    // The aborted run records its metrics after the answer, so they are flushed in a later turn.
    const { metrics } = scope.runtime;
    if (metrics?.flush !== undefined) setImmediate(metrics.flush);
  });
}

/** Watched deadlines form a doubly linked list, newest first. */
interface Deadline {
  readonly leftMs: number;
  readonly delayMs: number;
  /** On the clock of `performance`, which never steps. */
  readonly dueMs: number;
  /** Aborts at a watched deadline, with the error of the 504 response as the reason. */
  readonly controller: AbortController;
  isOver: boolean;
  listener: (() => void) | undefined;
  before: Deadline | undefined;
  after: Deadline | undefined;
}

/** Default time reserved for sending the response, in milliseconds. */
const defaultMarginMs = 50;
/** Middy's default margin, in milliseconds. An explicit 5 also becomes 50. */
const middyMarginMs = 5;
/** Longest time between two checks, and of an idle process's timer, in milliseconds. */
const lookMs = 500;

/**
 * Creates the deadlines of one function. They share one timer, which an invocation replaces only if
 * its deadline is the first: setting or clearing a timer took a tenth to a quarter of an
 * invocation's time (`wrapped-no-log` in `bench/results.json`). A `Set` was as slow, because V8
 * reallocates it whenever it becomes empty.
 *
 * @param plugin - if it disables the early timeout, deadlines are not watched and no signal aborts.
 */
function createDeadlines({
  timeoutEarly,
  timeoutEarlyInMillis,
}: Pick<MiddyPlugin, "timeoutEarly" | "timeoutEarlyInMillis">) {
  const marginMs = timeoutEarlyInMillis === middyMarginMs ? defaultMarginMs : timeoutEarlyInMillis;
  let first: Deadline | undefined;
  let timer: NodeJS.Timeout | undefined;
  let timerDueMs = 0;

  const arm = (dueMs: number) => {
    if (timer !== undefined) clearTimeout(timer);
    const nowMs = performance.now();
    timerDueMs = Math.min(Math.max(dueMs, nowMs), nowMs + lookMs);
    timer = setTimeout(look, timerDueMs - nowMs);
  };
  const look = () => {
    timer = undefined;
    const nowMs = performance.now();
    let nextMs = Number.POSITIVE_INFINITY;
    const due: Deadline[] = [];
    for (let one = first; one !== undefined; one = one.after) {
      if (one.dueMs <= nowMs) due.push(one);
      else nextMs = Math.min(nextMs, one.dueMs);
    }
    if (nextMs < Number.POSITIVE_INFINITY) arm(nextMs);
    for (const one of due) {
      unlink(one);
      one.isOver = true;
      one.listener?.();
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
    /** Returns `undefined` if the context has no time limit, as in tests. */
    of: (context: unknown): Deadline | undefined => {
      const { getRemainingTimeInMillis: remaining }: GivenContext = Object(context);
      if (typeof remaining !== "function") return undefined;
      const leftMs: unknown = remaining.call(context);
      if (typeof leftMs !== "number" || !Number.isFinite(leftMs)) return undefined;
      const delayMs = Math.max(leftMs - marginMs, 0);
      return {
        leftMs,
        delayMs,
        dueMs: performance.now() + delayMs,
        controller: new AbortController(),
        isOver: false,
        listener: undefined,
        before: undefined,
        after: undefined,
      };
    },
    /** Starts watching a deadline, until `leave`. */
    enter: (one: Deadline, listener: () => void): void => {
      if (!timeoutEarly) return;
      one.listener = listener;
      one.after = first;
      if (first !== undefined) first.before = one;
      first = one;
      if (timer === undefined || one.dueMs < timerDueMs) arm(one.dueMs);
    },
    /** Stops watching a deadline, if there is one, and returns whether it had already passed. */
    leave: (deadline: Deadline | undefined): boolean => {
      if (deadline === undefined) return false;
      unlink(deadline);
      return deadline.isOver;
    },
  };
}
