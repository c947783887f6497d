import type { Clock } from "../context/clock.ts";

/** Real time plus what was advanced. */
export interface TestClock extends Clock {
  /**
   * Moves the time on by `ms` milliseconds.
   *
   * @throws RangeError for a negative or fractional number: time does not go back.
   */
  advance(ms: number): void;
}

/** Makes a clock that a test moves. */
export function createTestClock(): TestClock {
  let advanced = 0;
  return {
    now: () => Date.now() + advanced,
    advance: (ms) => {
      if (!Number.isSafeInteger(ms) || ms < 0) throw new RangeError(`clock.advance: ${ms} is not a whole number of milliseconds`);
      advanced += ms;
    },
  };
}
