import type { ClaimKey } from "../../parts/once/claim.ts";
import type { TransactionItem } from "../../parts/once/claim-store.ts";

export interface ScheduleRecord {
  /** Last run that was done or skipped, in milliseconds since the epoch. */
  readonly lastMs: number;
  /** Run that is not done yet, which blocks all others. */
  readonly begun?: BegunFire | undefined;
}

/** A started attempt. */
export interface BegunAttempt {
  /** Number of the attempt, from 1. */
  readonly attempts: number;
  /** Last page of a schedule for tenants whose jobs this run has sent. */
  readonly sent?: SentPage | undefined;
}

export interface SentPage {
  readonly atMs: number;
  /** Number of the attempt that sent it. */
  readonly attempts: number;
  /** The last tenant of the page. */
  readonly tenantId: string;
}

export interface BegunFire {
  readonly atMs: number;
  readonly attempts: number;
  /** Earliest start of the next attempt. */
  readonly retryMs: number;
}

/** Every method is atomic. */
export interface ScheduleStore {
  /**
   * Times, by partition, before which this process does not read a schedule: its last run has ended,
   * and no process starts another before the next time.
   */
  readonly idleUntil: Map<string, number>;
  /** Times of the first checks by any process, by partition, that this process has read. */
  readonly firstLooks: Map<string, number>;
  read(key: ClaimKey): Promise<ScheduleRecord | undefined>;
  add(key: ClaimKey, lastMs: number): Promise<void>;
  /** Resolves to `undefined` if this or a later run is done, or another has started. */
  begin(key: ClaimKey, atMs: number): Promise<BegunAttempt | undefined>;
  /** Notes that a page is sent. Resolves to `false` if the run was taken over. */
  advance(key: ClaimKey, page: SentPage): Promise<boolean>;
  /** Unless the record has changed since. */
  postpone(key: ClaimKey, fire: BegunFire): Promise<void>;
  /** Returns `false` if the record has changed since. */
  giveUp(key: ClaimKey, fire: Omit<BegunFire, "retryMs">): Promise<boolean>;
  /** Skips runs due up to `atMs`. Returns `false` if the record has changed since `lastMs`. */
  pass(key: ClaimKey, lastMs: number, atMs: number): Promise<boolean>;
  /** Marks another process's run as done, unless a later run is done, or another has started. */
  skip(key: ClaimKey, atMs: number): Promise<void>;
  done(key: ClaimKey, atMs: number): TransactionItem;
}

export type ScheduleStep =
  | { readonly kind: "none" }
  | { readonly kind: "wait"; readonly untilMs: number }
  | { readonly kind: "fire"; readonly atMs: number }
  /** Skips a missed run. */
  | { readonly kind: "pass"; readonly atMs: number };

/** Lateness, in milliseconds, that is not a miss: a rule invokes a function only once a minute. */
export const graceMs = 120_000;
/** Delays before each retry of a failed run, in milliseconds. */
const retriesMs = [1_000, 5_000, 20_000, 60_000];
/** Until the next check after a failure. */
export const failureMs = 1_000;
export const maxAttempts = retriesMs.length + 1;

/** If several runs are due, only the last one, at `lastFire`, happens. */
export function scheduleStep(
  { lastMs, begun }: ScheduleRecord,
  {
    nowMs,
    missed,
    lastFire,
  }: { nowMs: number; missed: "once" | "skip"; lastFire: () => number | undefined },
): ScheduleStep {
  if (begun !== undefined) {
    const { atMs, retryMs } = begun;
    return retryMs > nowMs ? { kind: "wait", untilMs: retryMs } : { kind: "fire", atMs };
  }
  const atMs = lastFire();
  if (atMs === undefined || atMs <= lastMs) return { kind: "none" };
  return { kind: missed === "skip" && nowMs - atMs > graceMs ? "pass" : "fire", atMs };
}

/** A run for tenants may take any number of attempts, as long as it sends pages. */
export function attemptsSincePage({ attempts, sent }: BegunAttempt): number {
  return sent === undefined ? attempts : attempts - sent.attempts + 1;
}

/** Time of the next attempt; `undefined` if none is left. */
export function retryOf(attempts: number, nowMs: number) {
  const afterMs = retriesMs[attempts - 1];
  return afterMs === undefined ? undefined : nowMs + afterMs;
}
