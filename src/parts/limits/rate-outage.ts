import type { Clock } from "../../base/process/clock.ts";
import type { RateStore } from "./rate-store.ts";

/** Time in which a failed store is not asked again, in milliseconds. */
const pauseMs = 1_000;
/** Longest wait for the store, in milliseconds. A limit is not worth a longer request. */
const patienceMs = 2_000;

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

async function inTime<Result>(call: Promise<Result>): Promise<Result> {
  const { promise, reject } = Promise.withResolvers<never>();
  const late = new Error(`the store has not answered within ${patienceMs} ms`);
  const timer = setTimeout(() => reject(late), patienceMs);
  return Promise.race([call, promise]).finally(() => clearTimeout(timer));
}
