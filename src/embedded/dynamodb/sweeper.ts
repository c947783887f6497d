import type { Clock } from "../../base/process/clock.ts";
import type { Dynalite, Item } from "../service/dynalite.ts";
import type { ReadWriteLock } from "./read-write-lock.ts";
import { sweepExpired, tablesWithTimeToLive } from "./time-to-live.ts";
import { dropOldTokens } from "./transaction-token.ts";

const pauseMs = 10_000;
const limits = { tables: 20, items: 100, tokens: 1000 };

/** Deletes expired items and tokens. Holds the write lock for one page of one table at a time. */
export function createSweeper(dynalite: Dynalite, lock: ReadWriteLock, clock: Clock) {
  const starts = new Map<string, Item>();
  let tokenCursor = "";
  let dueAtMs = 0;
  return {
    /** Sweeps a page of each table, at most every 10 seconds. */
    async sweep(): Promise<void> {
      const nowMs = clock.now();
      if (nowMs < dueAtMs) return;
      dueAtMs = nowMs + pauseMs;
      await lock.write(async () => {
        tokenCursor = await dropOldTokens(dynalite.store, nowMs, limits.tokens, tokenCursor);
      });
      for (const table of await tablesWithTimeToLive(dynalite.store, limits.tables)) {
        await lock.write(async () => {
          const next = await sweepExpired(
            dynalite,
            { table, limit: limits.items, start: starts.get(table) },
            nowMs,
          );
          if (next === undefined) starts.delete(table);
          else starts.set(table, next);
        });
      }
    },
  };
}
