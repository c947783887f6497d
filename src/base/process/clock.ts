/** Source of the time. Tests replace it to control the time. */
export interface Clock {
  /** Returns the current time in milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = Object.freeze({ now: () => Date.now() });
