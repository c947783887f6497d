import type { ClaimKey } from "../../parts/once/claim.ts";
import type { TransactionItem } from "../../parts/once/claim-store.ts";
import type { BegunFire, ScheduleRecord } from "./schedule-step.ts";

/** Notes when schedules fired: each of these calls is atomic. */
export interface ScheduleStore {
  /** The record as every write before has left it. */
  read(key: ClaimKey): Promise<ScheduleRecord | undefined>;
  /** Notes a schedule that is seen for the first time; does nothing where it is noted. */
  add(key: ClaimKey, lastMs: number): Promise<void>;
  /**
   * Notes that a fire begins, and returns how often it was begun; `undefined` where it, or a later one, is done, or another one is
   * under way.
   */
  begin(key: ClaimKey, atMs: number): Promise<number | undefined>;
  /** Notes that a fire is begun again at `fire.retryMs`; does nothing where more has happened since. */
  postpone(key: ClaimKey, fire: BegunFire): Promise<void>;
  /** Notes that a fire is not begun again; `false` where more has happened since. */
  giveUp(key: ClaimKey, fire: Omit<BegunFire, "retryMs">): Promise<boolean>;
  /** Notes that what was due up to `atMs` has passed; `false` where more has happened since `lastMs`. */
  pass(key: ClaimKey, lastMs: number, atMs: number): Promise<boolean>;
  /** Notes that a fire is done, which somebody else has; does nothing where a later one is, or another one is under way. */
  skip(key: ClaimKey, atMs: number): Promise<void>;
  /** Says that a fire is done, as part of a transaction. */
  done(key: ClaimKey, atMs: number): TransactionItem;
}
