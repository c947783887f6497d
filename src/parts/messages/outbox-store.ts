import { claimKey } from "../once/claim.ts";
import type { TransactionItem } from "../once/claim-store.ts";
import type { Claims } from "../once/claims.ts";

export interface OutboxRow {
  /** Partition: `shard#<n>` for events, `due#<n>` for jobs and deliveries. */
  readonly shard: string;
  /** Time in milliseconds, then ID: the time of writing, or the time at which a job is due. */
  readonly sort: string;
  readonly eventId: string;
  readonly type: string;
  readonly tenantId?: string | undefined;
  readonly text: string;
  /** Stored attributes of a row that cannot be read, and so cannot be dispatched. */
  readonly unreadable?: Readonly<Record<string, unknown>>;
}

type Sorted = Pick<OutboxRow, "sort">;

export interface OutboxStore {
  /** Returns one row, or a head and its parts if the message exceeds 384 KiB. */
  items(row: OutboxRow): readonly TransactionItem[];
  remove(row: OutboxRow): Promise<void>;
  /** Moves a row out of its shard, so that it is not sent. Returns whether it still existed. */
  setAside(row: OutboxRow, reason: string, nowMs: number): Promise<boolean>;
  /**
   * Reads the first row of each shard, if it has any. The read is eventually consistent: it may miss a
   * new row, or return one that was just removed.
   */
  firsts(
    shards: readonly string[],
    beforeSort: string,
  ): Promise<readonly PromiseSettledResult<readonly Sorted[]>[]>;
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

export const timeDigits = 15;

/** Formats milliseconds since the epoch so that strings sort in the order of the numbers. */
export function timeText(ms: number): string {
  return String(ms).padStart(timeDigits, "0");
}

/** Place at which a sweep stopped in an outage. The next sweep starts there. */
export interface SweepStop {
  /** Sort key of the last row seen. */
  readonly after: string;
  /** Ordered groups with rows up to there that stay. */
  readonly blocked: ReadonlySet<string>;
}

/** By shard. */
export type SweepStops = Map<string, SweepStop>;

/** Result of a sweep of the outbox. */
export interface Swept {
  readonly dispatched: number;
  /** Minimum number of rows that remain. */
  readonly left: number;
  /** Rows, set aside for an operator, that the bus or the queue will never accept. */
  readonly setAside: number;
}

export interface WorkedPage {
  readonly swept: Swept;
  /** Whether a row was accepted or refused on its own, so that the next page may succeed. */
  readonly hasAnswers: boolean;
  /** Whether all rows wait for rows before them, so that none was tried. */
  readonly isLeftOut?: boolean;
}

const pageSize = 100;

/** Claim of a sweep: two concurrent sweeps would dispatch the same rows twice. */
export const sweepClaim = (shard: string) => claimKey(["outbox-sweep"], shard);

export interface Sweeping {
  readonly store: OutboxStore;
  readonly claims: Claims;
  readonly stops: SweepStops;
  readonly signal: AbortSignal | undefined;
  seen(rows: readonly Sorted[]): void;
  /** Called for each shard that another sweep has claimed, which counts as one row left. */
  held(): void;
  /** @param blocked - ordered groups with an earlier row that stays. The work adds to them. */
  work(rows: readonly OutboxRow[], blocked: Set<string>): Promise<WorkedPage>;
}

/** Reports of a sweep while it runs. */
export type SweepReports = Pick<Sweeping, "seen" | "held">;

/**
 * Sweeps all shards, one after another. The milliseconds of `beforeMs` choose the first, so that none
 * always waits for the others. After an abort, the rows that remain count as left.
 *
 * @param kind - `due` for jobs, which are kept apart from events because events are sent immediately.
 * @param beforeMs - time in epoch milliseconds. Rows of that time or later stay.
 * @throws any error of the store.
 */
export async function sweepShards(
  sweeping: Sweeping,
  kind: "shard" | "due",
  beforeMs: number,
): Promise<Swept> {
  if (sweeping.signal?.aborted) return nothing;
  const before = timeText(beforeMs);
  const names = Array.from(
    { length: shards },
    (_, index) => `${kind}#${(index + Math.abs(Math.trunc(beforeMs))) % shards}`,
  );
  const firsts = await sweeping.store.firsts(names, before);
  for (const first of firsts) if (first.status === "fulfilled") sweeping.seen(first.value);
  let total = nothing;
  for (const [number, first] of firsts.entries()) {
    if (first.status === "rejected") throw first.reason;
    // Most shards are empty, and so cost no claim.
    if (first.value.length === 0) continue;
    const swept = sweeping.signal?.aborted
      ? { ...nothing, left: 1 }
      : await sweepShard(sweeping, names[number] as string, before); // safe: one result for each name
    total = sum(total, swept);
  }
  return total;
}

/**
 * A page on which no row was accepted or refused ends the sweep, so that an outage does not cost a
 * read of all rows. The next sweep starts after that page, which so blocks no other rows. A page
 * that is left out moves the stop as well, but the sweep then returns to the first rows: if these
 * are accepted, the outage has ended.
 */
async function sweepShard(
  { store, claims, stops, signal, seen, held, work }: Sweeping,
  shard: string,
  before: string,
): Promise<Swept> {
  const taken = await claims.take(sweepClaim(shard), { waitMs: 0, stop: [] });
  if (taken.kind !== "taken") {
    held();
    return { ...nothing, left: 1 };
  }
  const { claim } = taken;
  let total = nothing;
  try {
    const stop = stops.get(shard);
    stops.delete(shard);
    // From the last stop to the end, then from the start to that stop.
    let [after, end, blocked] = [stop?.after, before, new Set(stop?.blocked)];
    for (let isWrapped = stop === undefined; ; ) {
      if (claim.isLost()) break;
      if (signal?.aborted) {
        const rest = await store.pending(shard, end, 1, after);
        total = sum(total, { ...nothing, left: rest.length });
        break;
      }
      const rows = await store.pending(shard, end, pageSize, after);
      if (rows.length > 0) {
        seen(rows);
        const { swept, hasAnswers, isLeftOut } = await work(rows, blocked);
        total = sum(total, swept);
        // A page that is not full may not be the last: a page ends at 1 MB, five large events.
        after = (rows.at(-1) as OutboxRow).sort; // safe: `rows` is not empty
        if (hasAnswers) {
          stops.delete(shard);
          continue;
        }
        // The abort may be why no row of the page was tried: that is no outage.
        if (signal?.aborted) continue;
        // The stop behind a page that was left out holds until other rows are accepted.
        if (!stops.has(shard)) stops.set(shard, { after, blocked });
        if (!isLeftOut) break;
      }
      if (isWrapped) break;
      isWrapped = true;
      // The blank includes the row at the stop.
      [after, end, blocked] = [undefined, `${stop?.after} `, new Set()];
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
