import type { Context } from "aws-lambda";
import type { Clock } from "../../base/process/clock.ts";

export type TimedContext = Partial<Pick<Context, "getRemainingTimeInMillis">>;

export interface TimeLeft {
  /**
   * Time at which Lambda ends the process, in epoch milliseconds; `undefined` if the context has no
   * limit.
   */
  readonly deadlineMs: number | undefined;
  /** Returns whether it is too late to start work that takes `ms` milliseconds. */
  isOverIn(ms: number): boolean;
}

/** Time before the function's timeout in which no work starts, in milliseconds. */
const marginMs = 1_000;

export function timeLeft(context: TimedContext | undefined, clock: Clock): TimeLeft {
  const leftMs = context?.getRemainingTimeInMillis?.();
  const deadlineMs = leftMs === undefined ? undefined : clock.now() + leftMs;
  return {
    deadlineMs,
    isOverIn: (ms) => deadlineMs !== undefined && clock.now() + ms > deadlineMs - marginMs,
  };
}
