import type { Clock } from "../../base/process/clock.ts";

export interface RateLimit {
  /**
   * Takes `count` tokens and returns 0. If too few are left, takes none and returns the seconds
   * until enough are available.
   */
  take(key: string, count: number): number;
}

/** Maximum number of keys in memory. Beyond it, the key that has been idle longest is reset. */
const maxKeys = 10_000;

/** Creates a token bucket for each key with `burst` tokens, refilled at `perSecond`. */
export function createRateLimit(
  { burst, perSecond }: { readonly burst: number; readonly perSecond: number },
  clock: Clock,
): RateLimit {
  const buckets = new Map<string, { readonly left: number; readonly atMs: number }>();
  return {
    take: (key, count) => {
      const nowMs = clock.now();
      const known = buckets.get(key);
      const elapsedMs = known === undefined ? 0 : Math.max(0, nowMs - known.atMs);
      const left = Math.min(burst, (known?.left ?? burst) + (elapsedMs / 1000) * perSecond);
      const isEnough = left >= count;
      buckets.delete(key); // moves the key to the end of the eviction order
      buckets.set(key, { left: isEnough ? left - count : left, atMs: nowMs });
      for (const oldest of buckets.keys()) {
        if (buckets.size <= maxKeys) break;
        buckets.delete(oldest);
      }
      return isEnough ? 0 : Math.ceil((count - left) / perSecond);
    },
  };
}
