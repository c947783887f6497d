import type { Clock } from "../context/clock.ts";
import type { Logger } from "../log/logger.ts";
import { claimKey } from "../once/claim-key.ts";
import type { Claims } from "../once/claims.ts";
import type { TransactionItem } from "../once/commit.ts";

/** An event that waits to be dispatched. */
export interface OutboxRow {
  /** `shard#<n>` */
  readonly shard: string;
  /** When it was written, in milliseconds, and its ID: rows of a shard are in the order of time. */
  readonly sort: string;
  /** For the log. */
  readonly eventId: string;
  readonly type: string;
  /** The envelope as it goes over the wire. */
  readonly text: string;
}

/** Keeps events until they are dispatched. */
export interface OutboxStore {
  /** What puts a row, for a transaction. */
  item(row: OutboxRow): TransactionItem;
  remove(row: OutboxRow): Promise<void>;
  /** The first rows of a shard before `beforeSort`, and behind `afterSort` where it is given, at most `limit`. */
  pending(shard: string, beforeSort: string, limit: number, afterSort?: string): Promise<readonly OutboxRow[]>;
}

/** Where events are dispatched to. */
export interface EventBus {
  /**
   * Puts events on the bus; tries again what the bus has not taken.
   *
   * @returns for each event why it was not taken, `undefined` where it was.
   * @throws where the bus cannot be reached.
   */
  put(events: readonly Pick<OutboxRow, "type" | "text">[]): Promise<readonly (string | undefined)[]>;
}

/** What an outbox works with. */
export interface OutboxOptions {
  readonly store: () => Promise<OutboxStore>;
  readonly bus: () => Promise<EventBus>;
  readonly claims: Claims;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Dispatches events after their commit, and sweeps what was left. */
export interface Outbox {
  /** Makes the row of an event. */
  row(event: { readonly eventId: string; readonly type: string }, text: string): OutboxRow;
  /** Dispatches rows that were committed. Never throws: what was not dispatched is left to the sweep, and logged. */
  dispatch(rows: readonly OutboxRow[]): Promise<void>;
  /**
   * Dispatches the rows that are older than `graceMs`, of every shard that nobody else sweeps.
   *
   * @returns how many were dispatched, and how many at least were left.
   * @throws what the store throws.
   */
  sweep(options: SweepOptions): Promise<Swept>;
}

/** How a sweep goes. */
export interface SweepOptions {
  /** How old a row has to be, in milliseconds: younger ones are on their way. */
  readonly graceMs: number;
  /** Ends it before the next page. */
  readonly signal?: AbortSignal;
}

/** What came of a sweep. */
export interface Swept {
  readonly dispatched: number;
  readonly left: number;
}

/** So many sweeps can go on at the same time, and so many partitions take the writes. */
const shards = 8;
/** How many rows of a shard are read at once. */
const pageSize = 100;

/** What whoever goes through a shard claims: two would dispatch the same rows twice. */
export const sweepClaim = (shard: string) => claimKey(["outbox-sweep"], shard);

/** Creates an {@link Outbox}. */
export function createOutbox({ store, bus, claims, clock, log }: OutboxOptions): Outbox {
  /** For each row why the bus has not taken it; a bus that cannot be reached has taken none. */
  const putAll = async (rows: readonly OutboxRow[]): Promise<readonly (string | undefined)[]> => {
    try {
      return await (await bus()).put(rows);
    } catch (error) {
      return rows.map(() => String(error));
    }
  };

  /** Puts rows on the bus and removes those that it has taken; gives how many. */
  const put = async (rows: readonly OutboxRow[]): Promise<number> => {
    const reasons = await putAll(rows);
    const left = rows.filter((_, index) => reasons[index] !== undefined);
    if (left.length > 0) {
      log.warn("event.dispatch_failed", { events: left.map(shown), reason: reasons.find((reason) => reason !== undefined) });
    }
    const rowStore = await store();
    await Promise.all(rows.filter((_, index) => reasons[index] === undefined).map((row) => rowStore.remove(row)));
    return rows.length - left.length;
  };

  const sweepShard = async (shard: string, { graceMs, signal }: SweepOptions): Promise<Swept> => {
    const before = timeText(clock.now() - graceMs + 1);
    // Most shards have nothing: these cost one read, and nobody has to claim them.
    const first = await (await store()).pending(shard, before, 1);
    if (first.length === 0) return { dispatched: 0, left: 0 };
    const taken = await claims.take(sweepClaim(shard), { waitMs: 0, stop: [] });
    if (taken.kind !== "taken") return { dispatched: 0, left: first.length };
    const { claim } = taken;
    let [dispatched, left] = [0, 0];
    try {
      let after: string | undefined;
      for (;;) {
        if (signal?.aborted || claim.isLost()) break;
        const rows = await (await store()).pending(shard, before, pageSize, after);
        if (rows.length === 0) break;
        const count = await put(rows);
        dispatched += count;
        left += rows.length - count;
        // A bus that takes nothing is asked another time; rows that it never takes do not hold up those behind them.
        if (count === 0) break;
        // A page that is not full is not the last: it ends at 1 MB, which five large events fill.
        after = rows.at(-1)?.sort;
      }
    } finally {
      await claim.release();
    }
    return { dispatched, left };
  };

  return {
    row: ({ eventId, type }, text) => {
      const shard = `shard#${Number.parseInt(eventId.slice(0, 8), 16) % shards}`;
      return { shard, sort: `${timeText(clock.now())}#${eventId}`, eventId, type, text };
    },
    dispatch: async (rows) => {
      if (rows.length === 0) return;
      try {
        await put(rows);
      } catch (error) {
        log.warn("event.dispatch_failed", { events: rows.map(shown), reason: String(error) }); // taken, but not removed
      }
    },
    sweep: async (options) => {
      const total = { dispatched: 0, left: 0 };
      for (let shard = 0; shard < shards && !options.signal?.aborted; shard += 1) {
        const { dispatched, left } = await sweepShard(`shard#${shard}`, options);
        total.dispatched += dispatched;
        total.left += left;
      }
      if (total.dispatched > 0 || total.left > 0) log.info("outbox.swept", total);
      return total;
    },
  };
}

/** Milliseconds since the epoch, so that texts are in the order of numbers. */
function timeText(ms: number): string {
  return String(ms).padStart(15, "0");
}

function shown({ type, eventId }: OutboxRow): string {
  return `${type} ${eventId}`;
}
