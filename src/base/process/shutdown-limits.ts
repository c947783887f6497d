export interface ShutdownTimes {
  /** Time in which requests are still accepted, so that load balancers notice. */
  readonly lingerMs: number;
  /** Time for requests in flight to finish. */
  readonly drainMs: number;
  /** Time from the signal to the end of the process. */
  readonly totalMs: number;
}

/** Default time limits (specification 8). */
export const defaultTimes: ShutdownTimes = Object.freeze({
  lingerMs: 3_000,
  drainMs: 30_000,
  totalMs: 40_000,
});

/** Time from SIGTERM to the kill of a Web Function, in milliseconds. */
export const webFunctionMs = 1_000;
/** Lambda routes requests elsewhere before it sends SIGTERM, hence no linger. */
const webFunctionTimes: ShutdownTimes = { lingerMs: 0, drainMs: 600, totalMs: 900 };

/** A total of at most a second has the other defaults of a Web Function. */
export function mergedTimes(
  given: Partial<ShutdownTimes> = {},
  isWebFunction = Number(given.totalMs) <= webFunctionMs,
): ShutdownTimes {
  const defaults = isWebFunction ? webFunctionTimes : defaultTimes;
  // A spread would let a given `undefined` replace a default.
  const {
    lingerMs = defaults.lingerMs,
    drainMs = defaults.drainMs,
    totalMs = defaults.totalMs,
  } = given;
  return { lingerMs, drainMs, totalMs };
}
