import type { Clock } from "../../../base/process/clock.ts";
import type { ClaimSchedule } from "../../../parts/once/held-claim.ts";

/** Clock that shows real time plus the time advanced. */
export interface TestClock extends Clock {
  /**
   * Advances the clock by `ms` milliseconds. A running handler keeps its claim, because the lease
   * is renewed at the new time.
   *
   * @throws RangeError for a negative or fractional number.
   */
  advance(ms: number): void;
}

/** @throws RangeError for a number by which no clock advances. */
export function checkAdvance(ms: number): void {
  if (!Number.isSafeInteger(ms) || ms < 0)
    throw new RangeError(`clock.advance: ${ms} is not a whole number of milliseconds`);
}

export type TestTimers = Pick<ClaimSchedule, "repeat">;

/** The timers follow the clock that a test advances. */
export function createTestClock(): { readonly clock: TestClock; readonly timers: TestTimers } {
  const repetitions = new Set<() => void>();
  let advanced = 0;
  const now = () => Date.now() + advanced;

  const repeat: TestTimers["repeat"] = (ms, task) => {
    let dueMs = now() + ms;
    let timer: NodeJS.Timeout | undefined;
    let last = Promise.resolve();
    // Starts a due task once, even after several intervals, like a Node timer after a suspension.
    const lookUp = () => {
      clearTimeout(timer);
      if (dueMs <= now()) {
        dueMs = now() + ms;
        // One task at a time: the clock may advance several steps, and the last run must win.
        last = last.then(() => (repetitions.has(lookUp) ? task() : undefined));
      }
      timer = setTimeout(lookUp, dueMs - now());
      timer.unref();
    };
    repetitions.add(lookUp);
    lookUp();
    return () => {
      clearTimeout(timer);
      repetitions.delete(lookUp);
    };
  };
  return {
    clock: {
      now,
      advance: (ms) => {
        checkAdvance(ms);
        advanced += ms;
        for (const lookUp of repetitions) lookUp();
      },
    },
    timers: { repeat },
  };
}
