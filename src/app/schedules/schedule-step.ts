export interface ScheduleRecord {
  /** The last fire that ran or was skipped, in milliseconds since the epoch. */
  readonly lastMs: number;
  /** Fire that is not done, and blocks all others. */
  readonly begun?: BegunFire | undefined;
}

export interface BegunFire {
  readonly atMs: number;
  /** Started attempts. */
  readonly attempts: number;
  /** Earliest start of the next attempt. */
  readonly retryMs: number;
}

export type ScheduleStep =
  | { readonly kind: "none" }
  /** For the next attempt of the fire in progress. */
  | { readonly kind: "wait"; readonly untilMs: number }
  | { readonly kind: "fire"; readonly atMs: number }
  /** Skips a missed fire. */
  | { readonly kind: "pass"; readonly atMs: number };

/** Lateness of a missed fire, in milliseconds. A rule invokes a function only once a minute. */
export const graceMs = 120_000;
/** Delays before each retry of a failed fire, in milliseconds. */
const retriesMs = [1_000, 5_000, 20_000, 60_000];
export const maxAttempts = retriesMs.length + 1;

/**
 * Of several due fires, only the last one runs.
 * @param lastFire - returns the last fire time up to now.
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
