import type { ClaimKey } from "../../parts/once/claim.ts";
import type { TransactionItem } from "../../parts/once/claim-store.ts";
import type { BegunFire, ScheduleRecord } from "./schedule-step.ts";

/** Records when each schedule fired. Every method is atomic. */
export interface ScheduleStore {
  /** Reads the record, including every earlier write. */
  read(key: ClaimKey): Promise<ScheduleRecord | undefined>;
  /** Records a schedule that is seen for the first time. Does nothing if a record exists. */
  add(key: ClaimKey, lastMs: number): Promise<void>;
  /**
   * Records the start of an attempt and returns the number of attempts of this fire. Returns
   * `undefined` if this or a later fire is done, or if another fire is in progress.
   */
  begin(key: ClaimKey, atMs: number): Promise<number | undefined>;
  /**
   * Records that a fire is retried at `fire.retryMs`. Does nothing if the record has changed since.
   */
  postpone(key: ClaimKey, fire: BegunFire): Promise<void>;
  /** Records that a fire is abandoned. Returns `false` if the record has changed since. */
  giveUp(key: ClaimKey, fire: Omit<BegunFire, "retryMs">): Promise<boolean>;
  /**
   * Records that fires due up to `atMs` are skipped. Returns `false` if the record has changed
   * since `lastMs`.
   */
  pass(key: ClaimKey, lastMs: number, atMs: number): Promise<boolean>;
  /**
   * Marks a fire as done that another process has completed. Does nothing if a later fire is done,
   * or if another fire is in progress.
   */
  skip(key: ClaimKey, atMs: number): Promise<void>;
  /** Creates the transaction item that marks a fire as done. */
  done(key: ClaimKey, atMs: number): TransactionItem;
}
