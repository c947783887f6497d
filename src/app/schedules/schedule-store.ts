import type { ClaimKey } from "../../parts/once/claim.ts";
import type { TransactionItem } from "../../parts/once/claim-store.ts";
import type { BegunFire, ScheduleRecord } from "./schedule-step.ts";

/** Stores the last run of each schedule. Every method is atomic. */
export interface ScheduleStore {
  read(key: ClaimKey): Promise<ScheduleRecord | undefined>;
  add(key: ClaimKey, lastMs: number): Promise<void>;
  /**
   * Records an attempt and returns the number of attempts of this run. `undefined` if this or a
   * later run is done, or another run has begun.
   */
  begin(key: ClaimKey, atMs: number): Promise<number | undefined>;
  /** Saves the time of the next attempt, unless the record has changed since. */
  postpone(key: ClaimKey, fire: BegunFire): Promise<void>;
  /** Gives up a run. Returns `false` if the record has changed since. */
  giveUp(key: ClaimKey, fire: Omit<BegunFire, "retryMs">): Promise<boolean>;
  /** Skips runs due up to `atMs`. Returns `false` if the record has changed since `lastMs`. */
  pass(key: ClaimKey, lastMs: number, atMs: number): Promise<boolean>;
  /**
   * Marks a run of another process as done, unless a later run is done, or another run has begun.
   */
  skip(key: ClaimKey, atMs: number): Promise<void>;
  done(key: ClaimKey, atMs: number): TransactionItem;
}
