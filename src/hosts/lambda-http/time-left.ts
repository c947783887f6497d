import type { Context } from "aws-lambda";
import type { Clock } from "../../base/process/clock.ts";

/** What is read of Lambda's context where a batch is worked on. */
export type TimedContext = Partial<Pick<Context, "getRemainingTimeInMillis">>;

/** How much time an invocation has. */
export interface TimeLeft {
  /** When the process is gone, in milliseconds since the epoch; `undefined` where the context knows no time. */
  readonly deadlineMs: number | undefined;
  /** Whether something that takes `ms` milliseconds is not to be begun any more. */
  isOverIn(ms: number): boolean;
}

/** What is not begun any more, in milliseconds before the function's time is over. */
const marginMs = 1_000;

/** Reads how much time an invocation has. */
export function timeLeft(context: TimedContext | undefined, clock: Clock): TimeLeft {
  const leftMs = context?.getRemainingTimeInMillis?.();
  const deadlineMs = leftMs === undefined ? undefined : clock.now() + leftMs;
  return {
    deadlineMs,
    isOverIn: (ms) => deadlineMs !== undefined && clock.now() + ms > deadlineMs - marginMs,
  };
}
