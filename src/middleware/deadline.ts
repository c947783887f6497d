import { FrameworkError } from "../errors/errors.ts";

/** When an invocation has to be answered. */
export interface Deadline {
  /** How long the process still has, in milliseconds. */
  readonly leftMs: number;
  /** Aborts when the time is over; its reason is the 504 that is answered. */
  readonly signal: AbortSignal;
  /**
   * Runs `work` until the time is over, and no longer: then it throws a FrameworkError `timeout`.
   * What `work` comes to later goes to `late` and nowhere else. No timer outlives the answer.
   */
  race<Result>(work: () => Promise<Result>, late: Late): Promise<Result>;
}

/** Is told that work was given up on, and then what it threw, if it throws. */
export interface Late {
  abandoned(afterMs: number): void;
  failed(error: unknown): void;
}

/** What is left for the answer's own way, in milliseconds. */
const marginMs = 50;
const longestTimerMs = 2_147_483_647;

/** The deadline of an invocation; `undefined` where its context knows no time, as in tests. */
export function deadlineOf(context: unknown): Deadline | undefined {
  const { getRemainingTimeInMillis: remaining } = (context ?? {}) as { getRemainingTimeInMillis?: unknown };
  if (typeof remaining !== "function") return undefined;
  const leftMs: unknown = remaining.call(context);
  if (typeof leftMs !== "number" || !Number.isFinite(leftMs)) return undefined;
  const delayMs = Math.min(Math.max(leftMs - marginMs, 0), longestTimerMs);
  const controller = new AbortController();

  return {
    leftMs,
    signal: controller.signal,
    race: (work, late) =>
      new Promise((resolve, reject) => {
        let isOver = false;
        // Keeps the process running on purpose: without it, one that waits for nothing would end unanswered.
        const timer = setTimeout(() => {
          isOver = true;
          const timeout = new FrameworkError("timeout", "The request took too long");
          late.abandoned(delayMs);
          controller.abort(timeout);
          reject(timeout);
        }, delayMs);
        work().then(
          (result) => {
            clearTimeout(timer);
            resolve(result);
          },
          (error: unknown) => {
            clearTimeout(timer);
            if (isOver) late.failed(error);
            else reject(error);
          },
        );
      }),
  };
}
