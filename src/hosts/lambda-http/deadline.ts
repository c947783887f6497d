import { FrameworkError } from "../../base/errors/errors.ts";
import { timeoutMessage } from "./middy-error.ts";

/** When an invocation has to be answered. */
export interface Deadline {
  /** How long the process still has, in milliseconds. */
  readonly leftMs: number;
  /** Aborts when the time is over, where it is watched; its reason is the 504 that is answered. */
  readonly signal: AbortSignal;
}

/** Called when the time is over. */
export interface TimeoutListener {
  /**
   * @param afterMs - how long the invocation had, in milliseconds
   * @param abort - aborts the signal; what listens then runs at once, so it is for the invocation's own scope to call
   */
  timedOut(timeout: FrameworkError, afterMs: number, abort: () => void): void;
}

/** The deadlines of one function. */
export interface Deadlines {
  /** The deadline of an invocation; `undefined` where its context knows no time, as in tests. */
  of(context: unknown, nowMs: number): Deadline | undefined;
  /** From here until `leave` the time counts. */
  enter(deadline: Deadline, listener: TimeoutListener): void;
  /** Ends it, and tells whether the time was over before. */
  leave(deadline: Deadline): boolean;
}

/** A deadline, and those before and after it: the first follows the last, which is the cheapest way to come and go. */
interface Linked extends Deadline {
  readonly delayMs: number;
  readonly dueMs: number;
  readonly controller: AbortController;
  listener: TimeoutListener | undefined;
  before: Linked | undefined;
  after: Linked | undefined;
}

/** Middy's options of its early timeout. */
export interface EarlyTimeout {
  /** Whether there is one. */
  readonly timeoutEarly: boolean;
  /** How long before the process is gone. */
  readonly timeoutEarlyInMillis: number;
}

/** The time reserved for sending the answer, in milliseconds, by default. */
const defaultMarginMs = 50;
/** Middy's own default: that it was given cannot be told. */
const middyMarginMs = 5;
/** How often the timer looks, at least: so long may it hold a process in which nothing is under way any more. */
const lookMs = 500;

/**
 * Creates the deadlines of one function. They share a timer, which an invocation neither sets nor clears unless it is
 * due first: either, for each invocation, was a tenth to a quarter of its time (`wrapped-no-log` in
 * `bench/results.json`), and so was a Set of them, which V8 makes anew whenever it becomes empty. The timer keeps
 * the process running while an invocation is under way.
 *
 * @param early - where it says that there is none, nobody watches the time, and no signal aborts.
 */
export function createDeadlines({ timeoutEarly, timeoutEarlyInMillis }: EarlyTimeout): Deadlines {
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
