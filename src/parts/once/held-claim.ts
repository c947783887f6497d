import type { Clock } from "../../base/process/clock.ts";
import {
  type ClaimKey,
  completedClaim,
  keyText,
  leaseEnd,
  leaseMs,
  type StoredResult,
  type TakingOptions,
  takenClaim,
  unfinishedExpiry,
} from "./claim.ts";
import type { ClaimStore } from "./claim-store.ts";

export interface ClaimSchedule {
  /** Resolves after `ms`, or when one of the signals aborts. */
  wait(ms: number, stop: readonly AbortSignal[]): Promise<void>;
  /** Calls `task`, which never rejects, every `ms` until the returned function is called. */
  repeat(ms: number, task: () => Promise<void>): () => void;
  random(): number;
  /** Milliseconds, to measure the duration of calls. */
  now(): number;
}

export interface HoldingParts {
  readonly store: ClaimStore;
  readonly clock: Clock;
  readonly schedule: ClaimSchedule;
  readonly retentionMs: () => number;
}

export interface HoldingOptions extends TakingOptions {
  generation: string | undefined;
  readonly retentionMs?: number | undefined;
}

/** Interval between lease renewals, in milliseconds. Two in a row may fail. */
const renewMs = leaseMs / 3;

/** A class, because closures would take most of a claim's time (benchmark `write-cpu`). */
export class Claim {
  readonly key: ClaimKey;
  readonly owner: string;
  readonly fingerprint: string | undefined;
  readonly generation: string | undefined;
  readonly #parts: HoldingParts;
  readonly #deadlineMs: number | undefined;
  readonly #execution: string | undefined;
  readonly #retentionMs: number | undefined;
  readonly #stopRenewing: (() => void) | undefined;
  #isLost = false;
  #isPaused = false;
  #seed: string | undefined = undefined;

  constructor(parts: HoldingParts, key: ClaimKey, owner: string, options: HoldingOptions) {
    const { fingerprint, generation, deadlineMs, execution, heldMs, retentionMs } = options;
    this.key = key;
    this.owner = owner;
    this.fingerprint = fingerprint;
    this.generation = generation;
    this.#parts = parts;
    this.#deadlineMs = deadlineMs;
    this.#execution = execution;
    this.#retentionMs = retentionMs;
    this.#stopRenewing =
      heldMs === undefined ? parts.schedule.repeat(renewMs, () => this.#renew()) : undefined;
  }

  retentionMs(): number {
    return this.#retentionMs ?? this.#parts.retentionMs();
  }

  /** Returns the seed of derived IDs: equal for a repeat of this run, new for later work. */
  seed(): string {
    this.#seed ??=
      this.generation === undefined ? keyText(this.key) : `${keyText(this.key)} ${this.generation}`;
    return this.#seed;
  }

  /** Whether another owner is known to have taken the claim over. */
  isLost(): boolean {
    return this.#isLost;
  }

  lose(): void {
    this.#isLost = true;
  }

  /** Completes the claim. Returns `false` if another owner has taken the claim over. */
  async complete(result: StoredResult | undefined): Promise<boolean> {
    this.abandon();
    // If only the response was lost, the record still names this owner, so a retry succeeds.
    let isOurs: boolean;
    try {
      isOurs = await this.#complete(result);
    } catch {
      isOurs = await this.#complete(result);
    }
    if (!isOurs) this.lose();
    return isOurs;
  }

  /** Ends the claim, so that the work can be done again immediately. */
  async release(): Promise<void> {
    this.abandon();
    const { store, clock } = this.#parts;
    // The record is kept if this run or an earlier one may have derived IDs from the generation.
    const isForgotten =
      this.generation === undefined || (this.generation === this.owner && this.#seed === undefined);
    if (isForgotten) await store.release(this.key, this.owner);
    else await store.vacate(this.key, this.owner, unfinishedExpiry(clock.now(), this.generation));
  }

  /** Lets the lease expire. */
  abandon(): void {
    this.#stopRenewing?.();
  }

  /** Renews nothing during `work`, which writes the record itself. */
  async paused<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#isPaused = true;
    try {
      return await work();
    } finally {
      this.#isPaused = false;
    }
  }

  #complete(result: StoredResult | undefined): Promise<boolean> {
    const { key, owner, fingerprint, generation } = this;
    const { store, clock } = this.#parts;
    const claim = completedClaim(owner, clock.now(), {
      result,
      fingerprint,
      generation,
      execution: this.#execution,
      retentionMs: this.retentionMs(),
    });
    return store.complete(key, claim);
  }

  async #renew(): Promise<void> {
    const { store, clock } = this.#parts;
    const nowMs = clock.now();
    // Without this check, the claim of a suspended durable execution would be renewed forever.
    if (this.#isLost || nowMs >= (this.#deadlineMs ?? Number.POSITIVE_INFINITY))
      return this.abandon();
    if (this.#isPaused) return;
    const leaseUntilMs = leaseEnd(nowMs, this.#deadlineMs);
    const expiresAt = unfinishedExpiry(leaseUntilMs, this.generation);
    try {
      if (!(await store.renew(this.key, this.owner, leaseUntilMs, expiresAt))) this.lose();
    } catch {
      // The next renewal makes up for this one.
    }
  }
}

/**
 * Renews a claim that the store was asked for at `startMs` of the schedule, if its lease may be over
 * before the first renewal. Resolves to `false` if another owner has taken it over.
 */
export function isStillHeld(
  { store, clock, schedule }: HoldingParts,
  key: ClaimKey,
  owner: string,
  options: HoldingOptions,
  startMs: number,
): true | Promise<boolean> {
  if (options.heldMs !== undefined || schedule.now() - startMs < renewMs) return true;
  const { leaseUntilMs, expiresAt } = takenClaim(owner, clock.now(), options);
  return store.renew(key, owner, leaseUntilMs, expiresAt);
}

export const processSchedule: ClaimSchedule = {
  wait: (ms, stop) =>
    new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        for (const signal of stop) signal.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      for (const signal of stop) signal.addEventListener("abort", end);
    }),
  repeat: (ms, task) => {
    const timer = setInterval(task, ms);
    timer.unref();
    return () => clearInterval(timer);
  },
  random: Math.random,
  now: Date.now,
};
