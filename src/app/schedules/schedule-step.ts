/** Stored state of a schedule. */
export interface ScheduleRecord {
  /**
   * Time of the last fire that ran or was skipped, in milliseconds since the epoch. Only later
   * fires are due.
   */
  readonly lastMs: number;
  /** Fire that has started but is not done. It blocks all other fires. */
  readonly begun?: BegunFire | undefined;
}

export interface BegunFire {
  readonly atMs: number;
  /** Number of attempts started. */
  readonly attempts: number;
  /** Earliest start of the next attempt, in milliseconds since the epoch. */
  readonly retryMs: number;
}

export type ScheduleStep =
  /** No fire is due. */
  | { readonly kind: "none" }
  /** The fire in progress waits for its next attempt. */
  | { readonly kind: "wait"; readonly untilMs: number }
  /** The schedule fires. */
  | { readonly kind: "fire"; readonly atMs: number }
  /** The fire was missed and is skipped. */
  | { readonly kind: "pass"; readonly atMs: number };

/**
 * Lateness after which a fire counts as missed, in milliseconds. A rule invokes a function only
 * once a minute.
 */
export const graceMs = 120_000;
/**
 * Delays before each retry of a failed fire, in milliseconds. After the last retry, the fire is
 * abandoned.
 */
const retriesMs = [1_000, 5_000, 20_000, 60_000];
export const maxAttempts = retriesMs.length + 1;

/**
 * Decides the next action for a schedule. If several fires are due, only the last one runs.
 *
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

/**
 * Returns the start of the next attempt after a failure, in milliseconds since the epoch, or
 * `undefined` if no attempts are left.
 */
export function retryOf(attempts: number, nowMs: number): number | undefined {
  const afterMs = retriesMs[attempts - 1];
  return afterMs === undefined ? undefined : nowMs + afterMs;
}
