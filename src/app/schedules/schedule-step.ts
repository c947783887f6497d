export interface ScheduleRecord {
  /** Time of the last run that was done or skipped, in milliseconds since the epoch. */
  readonly lastMs: number;
  /** Run that is not done yet, and blocks all others. */
  readonly begun?: BegunFire | undefined;
}

export interface BegunFire {
  readonly atMs: number;
  readonly attempts: number;
  /** Earliest start of the next attempt. */
  readonly retryMs: number;
}

export type ScheduleStep =
  | { readonly kind: "none" }
  /** Waits for the next attempt of the run that is not done. */
  | { readonly kind: "wait"; readonly untilMs: number }
  | { readonly kind: "fire"; readonly atMs: number }
  /** Skips a missed run. */
  | { readonly kind: "pass"; readonly atMs: number };

/**
 * Lateness after which a run is missed, in milliseconds: more than a minute, because a rule invokes
 * a function only once a minute.
 */
export const graceMs = 120_000;
/** Delays before each retry of a failed run, in milliseconds. */
const retriesMs = [1_000, 5_000, 20_000, 60_000];
export const maxAttempts = retriesMs.length + 1;

/**
 * Returns the next step of a schedule. If several runs are due, only the last one happens.
 * @param lastFire - returns the last scheduled time up to now.
 */
export function scheduleStep(
  { lastMs, begun }: ScheduleRecord,
  {
    nowMs,
    missed,
    lastFire,
  }: { nowMs: number; missed: "once" | "skip"; lastFire: () => number | undefined },
): ScheduleStep {
  if (begun !== undefined) {
    const { atMs, retryMs } = begun;
    return retryMs > nowMs ? { kind: "wait", untilMs: retryMs } : { kind: "fire", atMs };
  }
  const atMs = lastFire();
  if (atMs === undefined || atMs <= lastMs) return { kind: "none" };
  return { kind: missed === "skip" && nowMs - atMs > graceMs ? "pass" : "fire", atMs };
}

/** Start of the next attempt, in milliseconds since the epoch; `undefined` if none is left. */
export function retryOf(attempts: number, nowMs: number): number | undefined {
  const afterMs = retriesMs[attempts - 1];
  return afterMs === undefined ? undefined : nowMs + afterMs;
}
