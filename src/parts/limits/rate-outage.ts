import type { Clock } from "../../base/process/clock.ts";
import { inTime } from "../../base/process/in-time.ts";
import type { RateStore } from "./rate-store.ts";

/** Time in which a failed store is not asked again, in milliseconds. */
const pauseMs = 1_000;

/** Bounds the time of a failing store: each call, and the number of calls. */
export function withOutages(store: Pick<RateStore, "take">, clock: Clock): Pick<RateStore, "take"> {
  let failed: { readonly atMs: number; readonly error: unknown } | undefined;
  return {
    take: async (...given) => {
      const elapsedMs = failed === undefined ? pauseMs : clock.now() - failed.atMs;
      if (failed !== undefined && elapsedMs >= 0 && elapsedMs < pauseMs) throw failed.error;
      try {
        const before = await inTime(store.take(...given));
        failed = undefined;
        return before;
      } catch (error) {
        failed = { atMs: clock.now(), error };
        throw error;
      }
    },
  };
}
