/** Where the time comes from: the machine, or a test that moves it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

/** The machine's clock. */
export const systemClock: Clock = Object.freeze({ now: () => Date.now() });
