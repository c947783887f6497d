import type { RateWindow } from "./rate-window.ts";

/** Start of the partitions of rows. */
export const ratePartition = "rate:";

/** A declared limit, as rows and operators see it. */
export interface RateLimitFacts {
  /** Place of the declaration and name of the limit: `files.file.create requests-per-minute`. */
  readonly id: string;
  readonly window: RateWindow;
  /** Identifier of the configuration key with the number. Absent for a constant. */
  readonly key?: string | undefined;
}

/** Callers that share a number. */
export interface RatePartition {
  /** Unique among the partitions of a limit, readable, at most 600 characters. */
  readonly text: string;
  /** Tenant that the partition belongs to. */
  readonly tenantId?: string | undefined;
}

/** Row of one window of a partition. */
export interface RateRow extends RatePartition {
  readonly limit: RateLimitFacts;
  /** Start of the window, in epoch milliseconds. */
  readonly startMs: number;
}

export interface RateStore {
  /**
   * Takes `count` tokens of a window from which fewer than `number` have been taken. Returns how
   * many were taken before, or `undefined` if none was left. The last lease may take
   * too many tokens: tokens above `number` do not count. One call of the store.
   */
  take(row: RateRow, count: number, number: number): Promise<number | undefined>;
  /** Reads consistently how many tokens have been taken. */
  read(row: RateRow): Promise<number>;
  /**
   * Lists all rows, or the rows of a tenant, including rows of past windows, by scanning the whole
   * table. Tells `onPage` the number of rows scanned so far.
   */
  list(tenantId?: string, onPage?: (scanned: number) => void): AsyncIterable<ListedRate>;
  remove(row: ListedRate): Promise<void>;
}

export interface ListedRate extends Omit<RateRow, "limit"> {
  readonly limit: RateLimitFacts;
  /** Tokens that processes have taken. They may still hold some of these. */
  readonly taken: number;
  /** Number of the limit when tokens were last taken. */
  readonly number: number;
  readonly rowKey: Readonly<Record<string, string>>;
}
