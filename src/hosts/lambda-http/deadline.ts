import { FrameworkError } from "../../base/errors/errors.ts";
import type { MiddyPlugin } from "./lazy-mode.ts";
import { timeoutMessage } from "./middy-error.ts";

export interface Deadline {
  /** Time until Lambda ends the process, in milliseconds. */
  readonly leftMs: number;
  /** Aborts at the deadline, if it is watched. Its reason is the error of the 504 response. */
  readonly signal: AbortSignal;
}

export interface TimeoutListener {
  /**
   * Called at the deadline.
   * @param afterMs - time that the invocation had, in milliseconds.
   * @param abort - aborts the signal. Its listeners run synchronously, so call it within the
   * invocation's scope.
   */
  timedOut(timeout: FrameworkError, afterMs: number, abort: () => void): void;
}

export interface Deadlines {
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

/**
 * Deadline in a doubly linked list, which has the cheapest insertion and removal. New deadlines go
 * to the front.
 */
interface Linked extends Deadline {
  readonly delayMs: number;
  readonly dueMs: number;
  readonly controller: AbortController;
  listener: TimeoutListener | undefined;
  before: Linked | undefined;
  after: Linked | undefined;
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
export function createDeadlines({
  timeoutEarly,
  timeoutEarlyInMillis,
}: Pick<MiddyPlugin, "timeoutEarly" | "timeoutEarlyInMillis">): Deadlines {
  const marginMs = timeoutEarlyInMillis === middyMarginMs ? defaultMarginMs : timeoutEarlyInMillis;
  let first: Linked | undefined;
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
    const due: Linked[] = [];
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
  const unlink = (one: Linked) => {
    if (one.before !== undefined) one.before.after = one.after;
    else if (first === one) first = one.after;
    if (one.after !== undefined) one.after.before = one.before;
    one.before = undefined;
    one.after = undefined;
  };
  return {
    of: (context, nowMs) => {
      const { getRemainingTimeInMillis: remaining } = (context ?? {}) as {
        getRemainingTimeInMillis?: unknown;
      };
      if (typeof remaining !== "function") return undefined;
      const leftMs: unknown = remaining.call(context);
      if (typeof leftMs !== "number" || !Number.isFinite(leftMs)) return undefined;
      const delayMs = Math.max(leftMs - marginMs, 0);
      const controller = new AbortController();
      const dueMs = nowMs + delayMs;
      const { signal } = controller;
      const one: Linked = {
        leftMs,
        delayMs,
        dueMs,
        signal,
        controller,
        listener: undefined,
        before: undefined,
        after: undefined,
      };
      return one;
    },
    enter: (deadline, listener) => {
      if (!timeoutEarly) return;
      const one = deadline as Linked; // safe, here and below: `of` made it
      one.listener = listener;
      one.after = first;
      if (first !== undefined) first.before = one;
      first = one;
      if (timer === undefined || one.dueMs < timerDueMs) arm(one.dueMs);
    },
    leave: (deadline) => {
      unlink(deadline as Linked);
      return deadline.signal.aborted;
    },
  };
}
