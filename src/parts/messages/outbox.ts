import type { Logger } from "../../base/log/logger.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Clock } from "../../base/process/clock.ts";
import { claimKey } from "../once/claim.ts";
import type { TransactionItem } from "../once/claim-store.ts";
import type { Claims } from "../once/claims.ts";

/** An event that waits to be dispatched. */
export interface OutboxRow {
  /** `shard#<n>` */
  readonly shard: string;
  /** When it was written, in milliseconds, and its ID: rows of a shard are in the order of time. */
  readonly sort: string;
  /** For the log. */
  readonly eventId: string;
  readonly type: string;
  /** Whose it is. */
  readonly tenantId?: string | undefined;
  /** The envelope as it goes over the wire. */
  readonly text: string;
  /** What is stored, where that is no event: it cannot be dispatched. */
  readonly unreadable?: Readonly<Record<string, unknown>>;
}

/** Keeps events until they are dispatched. */
export interface OutboxStore {
  /** What puts a row, for a transaction. */
  item(row: OutboxRow): TransactionItem;
  remove(row: OutboxRow): Promise<void>;
  /**
   * Moves a row out of its shard, with all its attributes, to where it is not dispatched.
   *
   * @returns whether it was still there.
   */
  setAside(row: OutboxRow, reason: string, nowMs: number): Promise<boolean>;
  /** The first rows of a shard before `beforeSort`, and behind `afterSort` where it is given, at most `limit`. */
  pending(
    shard: string,
    beforeSort: string,
    limit: number,
    afterSort?: string,
  ): Promise<readonly OutboxRow[]>;
}

/** Why the bus has not taken an event. */
export interface Refusal {
  readonly reason: string;
  /** Whether the event is to blame, so that the bus will never take it. */
  readonly isFinal: boolean;
}

/** Where events are dispatched to. */
export interface EventBus {
  /**
   * Puts events on the bus; tries again what the bus has not taken. An event that it refuses keeps no other from being taken.
   *
   * @returns for each event why it was not taken, `undefined` where it was.
   */
  put(
    events: readonly Pick<OutboxRow, "type" | "text">[],
  ): Promise<readonly (Refusal | undefined)[]>;
  readonly name: string;
  /** Whether an instrumentation of its client makes spans. Default `false`. */
  readonly isTraced?: boolean;
}

/** What an outbox works with. */
export interface OutboxOptions {
  readonly store: OutboxStore;
  readonly bus: () => Promise<EventBus>;
  readonly claims: Claims;
  readonly clock: Clock;
  readonly log: Logger;
  /** Takes how many rows wait, and for how long. Default: nobody does. */
  readonly metrics?: Metrics | undefined;
  /** Where its sweeps have stopped. Default: its own. */
  readonly stops?: SweepStops;
  /** Sends the jobs that are due, read from the store that it is given; absent where there are none. */
  readonly sweepDue?:
    | ((signal: AbortSignal | undefined, store: OutboxStore) => Promise<Swept>)
    | undefined;
}

/** Dispatches events after their commit, and sweeps what was left. */
export interface Outbox {
  /** Makes the row of an event. */
  row(event: Pick<OutboxRow, "eventId" | "type" | "tenantId">, text: string): OutboxRow;
  /** Dispatches rows that were committed. Never throws: what was not dispatched is left to the sweep, and logged. */
  dispatch(rows: readonly OutboxRow[]): Promise<void>;
  /**
   * Dispatches rows of a shard that the caller has claimed, and sets aside those that the bus will never take.
   *
   * @throws what the store throws.
   */
  dispatchLeft(rows: readonly OutboxRow[]): Promise<Swept>;
  /**
   * Dispatches the rows that are older than `graceMs`, of every shard that no other sweep has claimed, and sets aside those that the
   * bus will never take. Then it sends the jobs that are due. What it has found is measured once it has looked everywhere.
   *
   * @throws what the store throws.
   */
  sweep(options: SweepOptions): Promise<Swept>;
}

/** By shard: behind which row a sweep has stopped, because nothing was taken there. The next one begins there. */
export type SweepStops = Map<string, string>;

/** How a sweep goes. */
export interface SweepOptions {
  /** How old a row has to be, in milliseconds: younger ones are on their way. */
  readonly graceMs: number;
  /** Ends it before the next page. */
  readonly signal?: AbortSignal;
}

/** The result of a sweep, in events and jobs that were due. */
export interface Swept {
  readonly dispatched: number;
  /** How many at least are still there, and will be tried again. */
  readonly left: number;
  /** How many the bus will never take: they are set aside for an operator. */
  readonly setAside: number;
}

/** So many sweeps can go on at the same time, and so many partitions take the writes. */
export const shards = 8;
/** How many rows of a shard are read at once. */
const pageSize = 100;

const noEvent: Refusal = {
  reason: "the row is no event: it has no envelope, type or event ID",
  isFinal: true,
};

/** What was done with a page of rows. */
export interface WorkedPage {
  readonly swept: Swept;
  /** Whether any row had an answer that is about this row alone: bus or queue work, and the next page may fare better. */
  readonly hasAnswers: boolean;
}

/** The claim of a shard's sweep: two sweeps at once would dispatch the same rows twice. */
export const sweepClaim = (shard: string) => claimKey(["outbox-sweep"], shard);

/** Creates an {@link Outbox}. */
export function createOutbox({
  store,
  bus,
  claims,
  clock,
  log,
  metrics,
  stops = new Map(),
  sweepDue,
}: OutboxOptions): Outbox {
  /** For each row why the bus has not taken it; a bus that cannot be opened has taken none. */
  const putAll = async (rows: readonly OutboxRow[]): Promise<readonly (Refusal | undefined)[]> => {
    const readable = rows.filter(({ unreadable }) => unreadable === undefined);
    const refusals = new Map<OutboxRow, Refusal | undefined>(rows.map((row) => [row, noEvent]));
    try {
      const answers = readable.length === 0 ? [] : await (await bus()).put(readable);
      for (const [index, row] of readable.entries()) refusals.set(row, answers[index]);
    } catch (error) {
      for (const row of readable) refusals.set(row, { reason: String(error), isFinal: false });
    }
    return rows.map((row) => refusals.get(row));
  };

  /** Puts rows on the bus and removes those that it has taken. What it will never take is left, or set aside. */
  const put = async (rows: readonly OutboxRow[], setsAside: boolean): Promise<WorkedPage> => {
    const refusals = await putAll(rows);
    const [taken, left, refused]: [OutboxRow[], string[], (readonly [OutboxRow, string])[]] = [
      [],
      [],
      [],
    ];
    let firstReason: string | undefined;
    for (const [index, row] of rows.entries()) {
      const refusal = refusals[index];
      if (refusal === undefined) taken.push(row);
      else if (setsAside && refusal.isFinal) refused.push([row, refusal.reason]);
      else {
        left.push(shown(row));
        firstReason ??= refusal.reason;
      }
    }
    if (left.length > 0) log.warn("event.dispatch_failed", { events: left, reason: firstReason });
    await Promise.all(taken.map((row) => store.remove(row)));
    let [setAside, stuck] = [0, 0];
    for (const [row, reason] of refused) {
      try {
        if (!(await store.setAside(row, reason, clock.now()))) continue;
        setAside += 1;
        metrics?.record("keelson.dead_letters", 1, { "keelson.kind": "event" });
        log.error("event.set_aside", { type: row.type, eventId: row.eventId, reason });
      } catch (error) {
        stuck += 1;
        log.warn("event.set_aside_failed", {
          type: row.type,
          eventId: row.eventId,
          refusal: reason,
          reason: String(error),
        });
      }
    }
    const swept = { dispatched: taken.length, left: left.length + stuck, setAside };
    return { swept, hasAnswers: left.length < rows.length };
  };

  return {
    row: ({ eventId, type, tenantId }, text) => {
      const shard = `shard#${Number.parseInt(eventId.slice(0, 8), 16) % shards}`;
      return { shard, sort: `${timeText(clock.now())}#${eventId}`, eventId, type, tenantId, text };
    },
    dispatch: async (rows) => {
      if (rows.length === 0) return;
      try {
        await put(rows, false);
      } catch (error) {
        log.warn("event.dispatch_failed", { events: rows.map(shown), reason: String(error) }); // taken, but not removed
      }
    },
    dispatchLeft: async (rows) => (await put(rows, true)).swept,
    sweep: async (options) => {
      let total = nothing;
      const { graceMs, signal } = options;
      const sweptFrom = clock.now();
      let oldestMs = sweptFrom;
      // Also those of a shard that another sweep has claimed, and jobs.
      const watched: OutboxStore = {
        ...store,
        pending: async (...asked) => {
          const rows = await store.pending(...asked);
          for (const ms of rows.map(timeOf)) if (ms < oldestMs) oldestMs = ms;
          return rows;
        },
      };
      for (let shard = 0; shard < shards && !signal?.aborted; shard += 1) {
        const before = timeText(clock.now() - graceMs + 1);
        const work = (rows: readonly OutboxRow[]) => put(rows, true);
        total = sum(
          total,
          await sweepShard(
            { store: watched, claims, stops },
            `shard#${shard}`,
            before,
            signal,
            work,
          ),
        );
      }
      if (sweepDue !== undefined && !signal?.aborted)
        total = sum(total, await sweepDue(signal, watched));
      const found = total.dispatched + total.left + total.setAside;
      if (found > 0) log.info("outbox.swept", { ...total });
      // One that was called off has not looked everywhere: what it has not seen may be long and old.
      if (!signal?.aborted) {
        metrics?.record("keelson.outbox.length", found);
        metrics?.record("keelson.outbox.age", (sweptFrom - oldestMs) / 1_000);
      }
      return total;
    },
  };
}

/**
 * Works on the rows of a shard before `before`, page by page, unless another sweep has claimed it. A page on which no row had an answer
 * ends it, so that an outage does not cost a look at all rows; the next sweep begins behind that page, so that rows that never get an
 * answer hold up no others.
 *
 * @throws what the store throws.
 */
export async function sweepShard(
  {
    store,
    claims,
    stops,
  }: Pick<OutboxOptions, "store" | "claims"> & { readonly stops: SweepStops },
  shard: string,
  before: string,
  signal: AbortSignal | undefined,
  work: (rows: readonly OutboxRow[]) => Promise<WorkedPage>,
): Promise<Swept> {
  // Most shards are empty: they cost one read, and no claim.
  const first = await store.pending(shard, before, 1);
  if (first.length === 0) return nothing;
  const taken = await claims.take(sweepClaim(shard), { waitMs: 0, stop: [] });
  if (taken.kind !== "taken") return { dispatched: 0, left: first.length, setAside: 0 };
  const { claim } = taken;
  let total = nothing;
  try {
    const stop = stops.get(shard);
    stops.delete(shard);
    // From where the last one has stopped to the end, then from the beginning to there.
    let [after, end] = [stop, before];
    for (let isWrapped = stop === undefined; ; ) {
      if (signal?.aborted || claim.isLost()) break;
      const rows = await store.pending(shard, end, pageSize, after);
      if (rows.length > 0) {
        const { swept, hasAnswers } = await work(rows);
        total = sum(total, swept);
        // A page that is not full is not the last: it ends at 1 MB, which five large events fill.
        after = (rows.at(-1) as OutboxRow).sort; // safe: it is not empty
        if (hasAnswers) continue;
        stops.set(shard, after);
        break;
      }
      if (isWrapped) break;
      isWrapped = true;
      [after, end] = [undefined, `${stop} `]; // a blank is less than what sorts go on with
    }
  } finally {
    await claim.release();
  }
  return total;
}

const nothing: Swept = Object.freeze({ dispatched: 0, left: 0, setAside: 0 });

/** Adds up what sweeps have done. */
export function sum(one: Swept, other: Swept): Swept {
  return {
    dispatched: one.dispatched + other.dispatched,
    left: one.left + other.left,
    setAside: one.setAside + other.setAside,
  };
}

/** Milliseconds since the epoch, so that texts are in the order of numbers. */
export function timeText(ms: number): string {
  return String(ms).padStart(15, "0");
}

/** When a row was written, in milliseconds since the epoch. */
function timeOf({ sort }: OutboxRow): number {
  return Number(sort.slice(0, sort.indexOf("#")));
}

function shown({ type, eventId }: OutboxRow): string {
  return `${type} ${eventId}`;
}
