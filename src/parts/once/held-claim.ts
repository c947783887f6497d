import type { Clock } from "../../base/process/clock.ts";
import {
  type ClaimKey,
  completedClaim,
  keyText,
  leaseEnd,
  leaseMs,
  type StoredResult,
  type TakingOptions,
  unfinishedExpiry,
} from "./claim.ts";
import type { ClaimStore } from "./claim-store.ts";

/** Claim that this process holds. */
export interface Claim {
  readonly key: ClaimKey;
  readonly owner: string;
  readonly fingerprint: string | undefined;
  readonly generation: string | undefined;
  /** Returns the retention after completion, in milliseconds. */
  retentionMs(): number;
  /**
   * Returns the string from which IDs are derived. It is the same for a repeat of this run and
   * different for later work under the same key.
   */
  seed(): string;
  /** Returns whether another owner has been seen in the record. */
  isLost(): boolean;
  /** Records that another owner has been seen in the record. */
  lose(): void;
  /** Stores the result. Returns `false` if another owner has taken the claim over. */
  complete(result: StoredResult | undefined): Promise<boolean>;
  /** Allows the work to be done again. */
  release(): Promise<void>;
  /** Stops renewing without a store call. The lease then expires. */
  abandon(): void;
  /** Pauses renewal during `work`, which writes the record itself. */
  paused<Result>(work: () => Promise<Result>): Promise<Result>;
}

/** Timers of a process, for waiting for a claim and for renewing it. */
export interface ClaimSchedule {
  /** Resolves after `ms`, or as soon as one of the signals aborts. */
  wait(ms: number, stop: readonly AbortSignal[]): Promise<void>;
  /** Calls `task`, which never rejects, every `ms` until the returned function is called. */
  repeat(ms: number, task: () => Promise<void>): () => void;
  /** Returns a number from 0 to 1. */
  random(): number;
}

export interface HoldingParts {
  readonly store: ClaimStore;
  readonly clock: Clock;
  readonly schedule: ClaimSchedule;
  readonly retentionMs: () => number;
}

interface HoldingOptions extends TakingOptions {
  readonly generation: string | undefined;
  readonly retentionMs?: number | undefined;
}

/** Interval of lease renewals. Two in a row may fail. */
const renewMs = leaseMs / 3;

/**
 * A class, because there is one per claim: creating separate functions for each would take most of
 * its time (`write-cpu`).
 */
export class HeldClaim implements Claim {
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

  seed(): string {
    this.#seed ??=
      this.generation === undefined ? keyText(this.key) : `${keyText(this.key)} ${this.generation}`;
    return this.#seed;
  }

  isLost(): boolean {
    return this.#isLost;
  }

  lose(): void {
    this.#isLost = true;
  }

  async complete(result: StoredResult | undefined): Promise<boolean> {
    this.abandon();
    // If only the response was lost, the record is complete and the second attempt finds its own
    // owner there.
    let isOurs: boolean;
    try {
      isOurs = await this.#complete(result);
    } catch {
      isOurs = await this.#complete(result);
    }
    if (!isOurs) this.lose();
    return isOurs;
  }

  async release(): Promise<void> {
    this.abandon();
    const { store, clock } = this.#parts;
    // If no ID was derived from the generation, nothing refers to it.
    const isForgotten =
      this.generation === undefined || (this.generation === this.owner && this.#seed === undefined);
    if (isForgotten) await store.release(this.key, this.owner);
    else await store.vacate(this.key, this.owner, unfinishedExpiry(clock.now(), this.generation));
  }

  abandon(): void {
    this.#stopRenewing?.();
  }

  async paused<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#isPaused = true;
    try {
      return await work();
    } finally {
      this.#isPaused = false;
    }
  }

  #complete(result: StoredResult | undefined): Promise<boolean> {
    const { store, clock } = this.#parts;
    const { fingerprint, generation } = this;
    const completed = {
      result,
      fingerprint,
      generation,
      execution: this.#execution,
      retentionMs: this.retentionMs(),
    };
    return store.complete(this.key, completedClaim(this.owner, clock.now(), completed));
  }

  async #renew(): Promise<void> {
    const { store, clock } = this.#parts;
    const nowMs = clock.now();
    // Without this check, work that never ends, such as a suspended durable execution, would be
    // renewed forever.
    if (this.#isLost || nowMs >= (this.#deadlineMs ?? Number.POSITIVE_INFINITY))
      return this.abandon();
    if (this.#isPaused) return;
    const leaseUntilMs = leaseEnd(nowMs, this.#deadlineMs);
    try {
      if (
        !(await store.renew(
          this.key,
          this.owner,
          leaseUntilMs,
          unfinishedExpiry(leaseUntilMs, this.generation),
        ))
      )
        this.lose();
    } catch {
      // The next renewal makes up for a failed one. The lease allows for two failures.
    }
  }
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
};
