import type { TransactionItem } from "../once/claim-store.ts";

/** Event that waits for dispatch. */
export interface OutboxRow {
  /** `shard#<n>` */
  readonly shard: string;
  /** Time of writing in milliseconds, then the ID. Rows of a shard are ordered by time. */
  readonly sort: string;
  /** For the log. */
  readonly eventId: string;
  readonly type: string;
  /** Tenant of the event. */
  readonly tenantId?: string | undefined;
  /** Envelope in its wire format. */
  readonly text: string;
  /** Stored attributes, if they are not an event. Such a row cannot be dispatched. */
  readonly unreadable?: Readonly<Record<string, unknown>>;
}

/** Stores events until they are dispatched. */
export interface OutboxStore {
  /** Returns the item that puts a row, for a transaction. */
  item(row: OutboxRow): TransactionItem;
  remove(row: OutboxRow): Promise<void>;
  /**
   * Moves a row with all its attributes out of its shard to a place from which it is not
   * dispatched.
   *
   * @returns whether the row still existed.
   */
  setAside(row: OutboxRow, reason: string, nowMs: number): Promise<boolean>;
  /**
   * Reads the first rows of a shard before `beforeSort` and, if given, after `afterSort`, up to
   * `limit`.
   */
  pending(
    shard: string,
    beforeSort: string,
    limit: number,
    afterSort?: string,
  ): Promise<readonly OutboxRow[]>;
}

/**
 * Number of shards. It limits the concurrent sweeps and is the number of partitions that receive
 * the writes.
 */
export const shards = 8;

/** Formats milliseconds since the epoch so that strings sort in the order of the numbers. */
export function timeText(ms: number): string {
  return String(ms).padStart(15, "0");
}
