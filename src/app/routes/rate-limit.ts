import type { Clock } from "../../base/process/clock.ts";

/** Limits how much each of many does, in this process. */
export interface RateLimit {
  /** Takes `count`, and returns 0; or nothing, and returns after how many seconds there will be as much. */
  take(key: string, count: number): number;
}

/** How many are remembered; who was idle longest begins anew. */
const maxKeys = 10_000;

/** Creates a token bucket for each key: `burst` at once, `perSecond` come back. */
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
      buckets.delete(key); // so that it is the youngest
      buckets.set(key, { left: isEnough ? left - count : left, atMs: nowMs });
      for (const oldest of buckets.keys()) {
        if (buckets.size <= maxKeys) break;
        buckets.delete(oldest);
      }
      return isEnough ? 0 : Math.ceil((count - left) / perSecond);
    },
  };
}
