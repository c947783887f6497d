/** What is noted of a schedule. */
export interface ScheduleRecord {
  /** The last time that it fired at, or was let pass, in milliseconds since the epoch: only what comes after it is due. */
  readonly lastMs: number;
  /** The fire that was begun and is not done: nothing else fires before. */
  readonly begun?: BegunFire | undefined;
}

/** A fire that was begun. */
export interface BegunFire {
  readonly atMs: number;
  /** How often it was begun. */
  readonly attempts: number;
  /** When it may be begun again, in milliseconds since the epoch. */
  readonly retryMs: number;
}

/** What is to be done for a schedule. */
export type ScheduleStep =
  /** Nothing is due. */
  | { readonly kind: "none" }
  /** What is due waits for its next attempt. */
  | { readonly kind: "wait"; readonly untilMs: number }
  /** It fires. */
  | { readonly kind: "fire"; readonly atMs: number }
  /** It was due while nothing ran, and is let pass. */
  | { readonly kind: "pass"; readonly atMs: number };

/** How late a fire may begin before it counts as missed, in milliseconds: a rule calls a function once a minute. */
export const graceMs = 120_000;
/** After how long a fire that failed is begun again, by how often it was, in milliseconds; after the last of them not at all. */
const retriesMs = [1_000, 5_000, 20_000, 60_000];
/** How often a fire is begun at the most. */
export const maxAttempts = retriesMs.length + 1;

/**
 * Decides what is to be done for a schedule. Of several times that are due the last one fires.
 *
 * @param lastFire - the last time up to now that it fires at.
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

/** When a fire that has failed is begun again, in milliseconds since the epoch; `undefined` where it was begun often enough. */
export function retryOf(attempts: number, nowMs: number): number | undefined {
  const afterMs = retriesMs[attempts - 1];
  return afterMs === undefined ? undefined : nowMs + afterMs;
}
