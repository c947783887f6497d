import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Random } from "./random.ts";

/** The clock of all processes, which steps. See `stepped-clock.ts`. */
export interface SoakClock {
  readonly file: string;
  now(): number;
  /** Steps forward or back, and returns by how many milliseconds. */
  step(random: Random): number;
  /** Steps ahead of every time so far, so that all delayed work is due. */
  stepAhead(): void;
}

// Together the steps stay below the time for which answers are kept.
const [earliestMs, latestMs] = [-120_000, 600_000];
const [longestBackMs, longestAheadMs] = [-60_000, 120_000];

export function createClock(directory: string): SoakClock {
  const file = join(directory, "clock");
  let offsetMs = 0;
  const set = (ms: number) => {
    offsetMs = ms;
    writeFileSync(`${file}.new`, String(ms));
    renameSync(`${file}.new`, file); // a process reads the one or the other
  };
  set(0);
  return {
    file,
    now: () => Date.now() + offsetMs,
    step: (random) => {
      const ms = Math.round(longestBackMs + random.fraction() * (longestAheadMs - longestBackMs));
      const before = offsetMs;
      set(Math.max(earliestMs, Math.min(latestMs, offsetMs + ms)));
      return offsetMs - before;
    },
    stepAhead: () => set(latestMs + longestAheadMs),
  };
}
