export interface ShutdownTimes {
  /** Time during which requests are still accepted, so that load balancers notice. */
  readonly lingerMs: number;
  /** Time for requests in flight to finish after the server stops accepting new ones. */
  readonly drainMs: number;
  /** Time for the whole shutdown, from the signal to the end of the process. */
  readonly totalMs: number;
}

/** Default time limits (specification 8). */
export const defaultTimes: ShutdownTimes = Object.freeze({
  lingerMs: 3_000,
  drainMs: 30_000,
  totalMs: 40_000,
});

/** Minimum time reserved for workers and resources, in milliseconds. */
export const leastRestMs = 1_000;

/** Time after which most platforms kill a process that they have told to stop, in milliseconds. */
export const platformMs = 30_000;

/** Times of the steps of a shutdown, in milliseconds since the epoch. */
export interface Deadlines {
  /** When the listener closes. */
  readonly lingerMs: number;
  /** When the signals of requests in flight abort. */
  readonly abortMs: number;
  /** When requests in flight are cut off. */
  readonly drainMs: number;
  /** When workers are abandoned. Another process receives their unfinished work. */
  readonly workersMs: number;
  /** When the shutdown stops waiting for resources to close. */
  readonly resourcesMs: number;
  readonly totalMs: number;
}

/** Maximum time between the abort of requests in flight and their cutoff, in milliseconds. */
const abortLeadMs = 1_000;

/**
 * Computes the deadlines of a shutdown. The phases after the drain share the rest of the total time.
 */
export function deadlinesFrom(
  startMs: number,
  { lingerMs, drainMs, totalMs }: ShutdownTimes,
): Deadlines {
  const linger = startMs + lingerMs;
  const total = startMs + totalMs;
  const drain = Math.min(linger + drainMs, total);
  const restMs = total - drain;
  return {
    lingerMs: linger,
    abortMs: Math.max(linger, drain - Math.min(abortLeadMs, drainMs / 10)),
    drainMs: drain,
    workersMs: drain + restMs * 0.4,
    resourcesMs: drain + restMs * 0.9,
    totalMs: total,
  };
}
