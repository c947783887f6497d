import { FrameworkError } from "../errors/errors.ts";

/** When an invocation has to be answered. */
export interface Deadline {
  /** How long the process still has, in milliseconds. */
  readonly leftMs: number;
  /** Aborts when the time is over; its reason is the 504 that is answered. */
  readonly signal: AbortSignal;
  /**
   * Runs `work` until the time is over, and no longer: then it throws a FrameworkError `timeout`.
   * What `work` comes to later goes to `late` and nowhere else.
   */
  race<Result>(work: () => Promise<Result>, late: Late): Promise<Result>;
}

/** Is told that work was given up on, and then what it threw, if it throws. */
export interface Late {
  /** Runs `work` as part of the invocation: a timer would run it as part of another. */
  within(work: () => void): void;
  abandoned(afterMs: number): void;
  failed(error: unknown): void;
}

/** The deadlines of one function. */
export interface Deadlines {
  /** The deadline of an invocation; `undefined` where its context knows no time, as in tests. */
  of(context: unknown): Deadline | undefined;
}

interface Waiting {
  readonly dueMs: number;
  end(): void;
}

/** What is left for the answer's own way, in milliseconds. */
const marginMs = 50;
const longestTimerMs = 2_147_483_647;

/**
 * Creates the deadlines of one function. They share a timer, which is set anew only for one that is due earlier: a
 * timer of its own for each invocation was a quarter of its time (`wrapped-no-log` in `bench/results.json`). It
 * keeps the process running while an invocation is under way, and only then.
 */
export function createDeadlines(): Deadlines {
  const waiting = new Set<Waiting>();
  let timer: NodeJS.Timeout | undefined;
  let timerDueMs = 0;

  const arm = (dueMs: number) => {
    clearTimeout(timer);
    timerDueMs = dueMs;
    timer = setTimeout(fire, Math.min(Math.max(dueMs - Date.now(), 0), longestTimerMs));
  };
  const fire = () => {
    timer = undefined;
    const nowMs = Date.now();
    for (const one of waiting) {
      if (one.dueMs > nowMs) continue;
      waiting.delete(one);
      one.end();
    }
    if (waiting.size > 0) arm(Math.min(...Array.from(waiting, ({ dueMs }) => dueMs)));
  };
  const enter = (one: Waiting) => {
    waiting.add(one);
    if (timer === undefined || one.dueMs < timerDueMs) arm(one.dueMs);
    else if (waiting.size === 1) timer.ref();
  };
  const leave = (one: Waiting) => {
    if (waiting.delete(one) && waiting.size === 0) timer?.unref();
  };

  return {
    of: (context) => {
      const { getRemainingTimeInMillis: remaining } = (context ?? {}) as { getRemainingTimeInMillis?: unknown };
      if (typeof remaining !== "function") return undefined;
      const leftMs: unknown = remaining.call(context);
      if (typeof leftMs !== "number" || !Number.isFinite(leftMs)) return undefined;
      const delayMs = Math.max(leftMs - marginMs, 0);
      const controller = new AbortController();
      return {
        leftMs,
        signal: controller.signal,
        race: (work, late) =>
          new Promise((resolve, reject) => {
            const one: Waiting = {
              dueMs: Date.now() + delayMs,
              end: () =>
                late.within(() => {
                  const timeout = new FrameworkError("timeout", "The request took too long");
                  late.abandoned(delayMs);
                  controller.abort(timeout);
                  reject(timeout);
                }),
            };
            enter(one);
            work().then(
              (result) => {
                leave(one);
                resolve(result);
              },
              (error: unknown) => {
                leave(one);
                if (controller.signal.aborted) late.failed(error);
                else reject(error);
              },
            );
          }),
      };
    },
  };
}
