import { claimKey } from "../once/claim.ts";
import type { TransactionItem } from "../once/claim-store.ts";
import type { Claims } from "../once/claims.ts";

/** Event, job or delivery that waits for dispatch. */
export interface OutboxRow {
  /** Partition: `shard#<n>` for events, `due#<n>` for jobs and deliveries. */
  readonly shard: string;
  /** Time in milliseconds, then ID: the time of writing, or the time at which a job is due. */
  readonly sort: string;
  readonly eventId: string;
  readonly type: string;
  readonly tenantId?: string | undefined;
  /** Envelope of the event, or the job with its hashes. */
  readonly text: string;
  /** Stored attributes of a row that cannot be read, and so cannot be dispatched. */
  readonly unreadable?: Readonly<Record<string, unknown>>;
}

export interface OutboxStore {
  item(row: OutboxRow): TransactionItem;
  remove(row: OutboxRow): Promise<void>;
  /**
   * Moves a row with all its attributes out of its shard, so that it is not dispatched.
   * @returns whether the row still existed.
   */
  setAside(row: OutboxRow, reason: string, nowMs: number): Promise<boolean>;
  /** Reads the first row of each shard before `beforeSort`, concurrently. */
  firsts(
    shards: readonly string[],
    beforeSort: string,
  ): Promise<readonly PromiseSettledResult<readonly OutboxRow[]>[]>;
  /** Reads up to `limit` rows of a shard before `beforeSort` and, if given, after `afterSort`. */
  pending(
    shard: string,
    beforeSort: string,
    limit: number,
    afterSort?: string,
  ): Promise<readonly OutboxRow[]>;
}

/** Number of shards, which limits concurrent sweeps and the partitions that receive writes. */
export const shards = 8;
const numbers: readonly number[] = Object.freeze([...Array(shards).keys()]);

/** Names a shard of due jobs, which are kept apart from events because events are sent at once. */
export function dueShard(number: number): string {
  return `due#${number}`;
}

/** Formats milliseconds since the epoch so that strings sort in the order of the numbers. */
export function timeText(ms: number): string {
  return String(ms).padStart(15, "0");
}

/**
 * For each shard, the row after which a sweep stopped because no row was accepted. The next sweep
 * starts there.
 */
export type SweepStops = Map<string, string>;

/** Result of a sweep: numbers of events and due jobs. */
export interface Swept {
  readonly dispatched: number;
  /** Minimum number of rows that remain and will be retried. */
  readonly left: number;
  /** Number of rows, set aside for an operator, that the bus or the queue will never accept. */
  readonly setAside: number;
}

export interface WorkedPage {
  readonly swept: Swept;
  /**
   * Whether a row was accepted or refused individually. If so, the bus or queue is available, so
   * the next page may succeed.
   */
  readonly hasAnswers: boolean;
}

const pageSize = 100;

/** Returns the key of a sweep's claim. Two concurrent sweeps would dispatch the same rows twice. */
export const sweepClaim = (shard: string) => claimKey(["outbox-sweep"], shard);

export interface Sweeping {
  readonly store: OutboxStore;
  readonly claims: Claims;
  readonly stops: SweepStops;
  readonly signal: AbortSignal | undefined;
  /** Receives all rows that are read. */
  seen(rows: readonly OutboxRow[]): void;
  /** Sends rows of a shard that the sweep has claimed. */
  work(rows: readonly OutboxRow[]): Promise<WorkedPage>;
}

/**
 * Sweeps all shards, one after another.
 *
 * @param nameOf - names a shard by its number.
 * @param beforeMs - time in epoch milliseconds. Rows of that time or later stay.
 * @throws any error of the store.
 */
export async function sweepShards(
  sweeping: Sweeping,
  nameOf: (number: number) => string,
  beforeMs: number,
): Promise<Swept> {
  if (sweeping.signal?.aborted) return nothing;
  const before = timeText(beforeMs);
  const names = numbers.map(nameOf);
  const firsts = await sweeping.store.firsts(names, before);
  let total = nothing;
  for (const [number, first] of firsts.entries()) {
    if (sweeping.signal?.aborted) break;
    if (first.status === "rejected") throw first.reason;
    // Most shards are empty, so they cost only the concurrent read above and no claim.
    if (first.value.length === 0) continue;
    sweeping.seen(first.value);
    total = sum(total, await sweepShard(sweeping, names[number] as string, before)); // safe: one result for each name
  }
  return total;
}

/**
 * Sends the rows of a shard before `before`, page by page, unless another sweep has claimed the
 * shard. A page on which no row was accepted or refused ends the sweep, so that an outage does not
 * cost a read of all rows. The next sweep starts after that page, so that it does not block other
 * rows.
 * @throws any error of the store.
 */
async function sweepShard(
  { store, claims, stops, signal, seen, work }: Sweeping,
  shard: string,
  before: string,
): Promise<Swept> {
  const taken = await claims.take(sweepClaim(shard), { waitMs: 0, stop: [] });
  if (taken.kind !== "taken") return { dispatched: 0, left: 1, setAside: 0 };
  const { claim } = taken;
  let total = nothing;
  try {
    const stop = stops.get(shard);
    stops.delete(shard);
    // Reads from the position of the last stop to the end, then from the start to that position.
    let [after, end] = [stop, before];
    for (let isWrapped = stop === undefined; ; ) {
      if (signal?.aborted || claim.isLost()) break;
      const rows = await store.pending(shard, end, pageSize, after);
      if (rows.length > 0) {
        seen(rows);
        const { swept, hasAnswers } = await work(rows);
        total = sum(total, swept);
        // A page that is not full may not be the last, because a page ends at 1 MB: five large
        // events.
        after = (rows.at(-1) as OutboxRow).sort; // safe: `rows` is not empty
        if (hasAnswers) continue;
        stops.set(shard, after);
        break;
      }
      if (isWrapped) break;
      isWrapped = true;
      [after, end] = [undefined, `${stop} `]; // the blank includes the row at `stop`
    }
  } finally {
    await claim.release();
  }
  return total;
}

export const nothing: Swept = Object.freeze({ dispatched: 0, left: 0, setAside: 0 });

export function sum(one: Swept, other: Swept): Swept {
  return {
    dispatched: one.dispatched + other.dispatched,
    left: one.left + other.left,
    setAside: one.setAside + other.setAside,
  };
}
