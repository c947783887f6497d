import type { ClaimKey } from "../../parts/once/claim.ts";
import type { TransactionItem } from "../../parts/once/claim-store.ts";
import type { BegunFire, ScheduleRecord } from "./schedule-step.ts";

/** Records when each schedule fired. Every method is atomic. */
export interface ScheduleStore {
  /** Reads with every earlier write. */
  read(key: ClaimKey): Promise<ScheduleRecord | undefined>;
  /** Does nothing if a record exists. */
  add(key: ClaimKey, lastMs: number): Promise<void>;
  /**
   * Records an attempt and returns the number of attempts of this fire. `undefined` if this or a
   * later fire is done, or another is in progress.
   */
  begin(key: ClaimKey, atMs: number): Promise<number | undefined>;
  /** Does nothing if the record has changed since. */
  postpone(key: ClaimKey, fire: BegunFire): Promise<void>;
  /** Records that a fire is abandoned. `false` if the record has changed since. */
  giveUp(key: ClaimKey, fire: Omit<BegunFire, "retryMs">): Promise<boolean>;
  /** Skips fires due up to `atMs`. `false` if the record has changed since `lastMs`. */
  pass(key: ClaimKey, lastMs: number, atMs: number): Promise<boolean>;
  /**
   * Records a fire that another process has completed. Does nothing if a later fire is done, or
   * another is in progress.
   */
  skip(key: ClaimKey, atMs: number): Promise<void>;
  /** Item of a transaction that marks a fire as done. */
  done(key: ClaimKey, atMs: number): TransactionItem;
}
