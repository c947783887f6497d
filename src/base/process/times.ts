/** How long the phases of a shutdown may take, in milliseconds. */
export interface ShutdownTimes {
  /** How long requests are still accepted, for balancers to take notice. */
  readonly lingerMs: number;
  /** How long requests in flight may take to finish once no more are accepted. */
  readonly drainMs: number;
  /** How long everything may take, from the signal to the end of the process. */
  readonly totalMs: number;
}

/** The times of specification 8. */
export const defaultTimes: ShutdownTimes = Object.freeze({
  lingerMs: 3_000,
  drainMs: 30_000,
  totalMs: 40_000,
});

/** What has to be left for workers and resources, in milliseconds. */
export const leastRestMs = 1_000;

/** After how long most platforms kill a process that they have told to stop, in milliseconds. */
export const platformMs = 30_000;

/** When each phase ends at the latest, in milliseconds since the epoch. */
export interface Deadlines {
  /** The listener closes. */
  readonly lingerMs: number;
  /** The signals of requests in flight abort. */
  readonly abortMs: number;
  /** Requests in flight are cut off. */
  readonly drainMs: number;
  /** Workers are left alone: what they are at comes again elsewhere. */
  readonly workersMs: number;
  /** Resources that are not closed by then stay open. */
  readonly resourcesMs: number;
  /** The process ends. */
  readonly totalMs: number;
}

/** How long before they are cut off requests in flight are told to stop, in milliseconds. */
const abortLeadMs = 1_000;

/** The deadlines of a shutdown that begins at `startMs`. What the drain leaves of the total is shared by those after it. */
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
