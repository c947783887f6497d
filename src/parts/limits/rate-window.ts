/** Length of a rate limit's window. */
export type RateWindow = "second" | "minute" | "hour" | "day";

export const windowMs: Readonly<Record<RateWindow, number>> = Object.freeze({
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
});

/** Returns the start of the window, in epoch milliseconds. Windows are aligned in UTC. */
export function windowStart(lengthMs: number, nowMs: number): number {
  return nowMs - (nowMs % lengthMs);
}

/** Returns the seconds until a time, rounded up, at least 1, so that no client returns too early. */
export function secondsUntil(atMs: number, nowMs: number): number {
  return Math.max(1, Math.ceil((atMs - nowMs) / 1_000));
}
