import type { Clock } from "../../base/process/clock.ts";
import type { ClaimSchedule } from "../../parts/once/claims.ts";

/** Real time plus the time advanced. */
export interface TestClock extends Clock {
  /**
   * Advances the clock by `ms` milliseconds. A running handler keeps its claim: its lease is renewed at the new time.
   *
   * @throws RangeError for a negative or fractional number.
   */
  advance(ms: number): void;
}

/** Timers that go by a test's clock. */
export type TestTimers = Pick<ClaimSchedule, "repeat">;

/** One of the things that are done again and again. */
interface Repetition {
  /** Begins what is due by now, once however often it was due, as Node does after a process stood still. */
  lookUp(): void;
}

/** Makes a clock that a test moves, and timers that go by it. */
export function createTestClock(): { readonly clock: TestClock; readonly timers: TestTimers } {
  const repetitions = new Set<Repetition>();
  let advanced = 0;
  const now = () => Date.now() + advanced;

  const repeat: TestTimers["repeat"] = (ms, task) => {
    let dueMs = now() + ms;
    let timer: NodeJS.Timeout | undefined;
    let last = Promise.resolve();
    const begin = () => {
      // One after the other: several steps may be taken at once, and the last is the one that has to count.
      last = last.then(() => (repetitions.has(repetition) ? task() : undefined));
    };
    const lookUp = () => {
      clearTimeout(timer);
      if (dueMs <= now()) {
        dueMs = now() + ms;
        begin();
      }
      timer = setTimeout(lookUp, dueMs - now());
      timer.unref();
    };
    const repetition: Repetition = { lookUp };
    repetitions.add(repetition);
    lookUp();
    return () => {
      clearTimeout(timer);
      repetitions.delete(repetition);
    };
  };
  return {
    clock: {
      now,
      advance: (ms) => {
        if (!Number.isSafeInteger(ms) || ms < 0) {
          throw new RangeError(`clock.advance: ${ms} is not a whole number of milliseconds`);
        }
        advanced += ms;
        for (const { lookUp } of repetitions) lookUp();
      },
    },
    timers: { repeat },
  };
}
