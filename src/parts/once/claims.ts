import type { Clock } from "../../base/process/clock.ts";
import {
  type ClaimInProgress,
  type ClaimKey,
  type ClaimRecord,
  type CompletedClaim,
  completedClaim,
  defaultRetentionMs,
  judge,
  keyText,
  leaseEnd,
  leaseMs,
  type StoredResult,
  takenClaim,
  unfinishedExpiry,
} from "./claim.ts";
import type { ClaimStore } from "./claim-store.ts";

/**
 * Dependencies of {@link createClaims}. A test replaces the clock, the timers and the randomness.
 */
export interface ClaimsOptions {
  readonly store: ClaimStore;
  readonly clock: Clock;
  readonly schedule?: ClaimSchedule;
  readonly newOwner?: () => string;
  /**
   * Returns the retention of a completed claim, in milliseconds. Default 300,000 (specification
   * 3.2).
   */
  readonly retentionMs?: () => number;
}

export interface ClaimSchedule {
  /** Resolves after `ms`, or as soon as one of the signals aborts. */
  wait(ms: number, stop: readonly AbortSignal[]): Promise<void>;
  /** Calls `task`, which never rejects, every `ms` until the returned function is called. */
  repeat(ms: number, task: () => Promise<void>): () => void;
  /** Returns a number from 0 to 1. */
  random(): number;
}

export interface TakeOptions {
  readonly fingerprint?: string | undefined;
  /** Whether a record with another fingerprint is refused instead of treated as a duplicate. */
  readonly comparesFingerprint?: boolean;
  /**
   * End of the process, in milliseconds since the epoch. No lease and no wait extends beyond it.
   */
  readonly deadlineMs?: number | undefined;
  /** Longest wait for a duplicate in flight, in milliseconds. */
  readonly waitMs: number;
  /** Signals that end the wait: the process drains, or the callers have disconnected. */
  readonly stop: readonly AbortSignal[];
  /**
   * Retention after completion, in milliseconds. Default: the retention of {@link ClaimsOptions}.
   */
  readonly retentionMs?: number | undefined;
  /** Default: a new random owner. */
  readonly owner?: string;
  /**
   * Whether the claim has a generation, because IDs are derived from it and other work may use its
   * key later. Default `false`.
   */
  readonly hasGeneration?: boolean;
  /** Hash of the durable execution that takes the claim. */
  readonly execution?: string | undefined;
  /** Fixed lease, in milliseconds: no process renews it between two invocations. */
  readonly heldMs?: number | undefined;
  /**
   * Puts `claim` in place of a claim in progress that the taker may continue. Returns `undefined`
   * if the taker may not continue it, and resolves to `false` if the record has changed in between.
   */
  adopt?(record: ClaimInProgress, claim: ClaimInProgress): Promise<boolean> | undefined;
}

export type Taken =
  | { readonly kind: "taken"; readonly claim: Claim; readonly hasWaited: boolean }
  | { readonly kind: "done"; readonly record: CompletedClaim; readonly hasWaited: boolean }
  /** The key was used for other work. */
  | { readonly kind: "other" }
  /** A duplicate is still running. Its lease ends at `untilMs` unless it is renewed. */
  | { readonly kind: "running"; readonly record: ClaimRecord; readonly untilMs: number };

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

export interface Claims {
  /** @throws any error of the store, after a second attempt. */
  take(key: ClaimKey, options: TakeOptions): Promise<Taken>;
}

/** Interval of lease renewals. Two in a row may fail. */
const renewMs = leaseMs / 3;
/** Pauses between two reads of a duplicate's claim, in milliseconds. */
const [shortestPollMs, longestPollMs] = [40, 500];

export function createClaims(options: ClaimsOptions): Claims {
  const {
    store,
    clock,
    schedule = processSchedule,
    newOwner = () => crypto.randomUUID(),
    retentionMs = () => defaultRetentionMs,
  } = options;
  const parts = { store, clock, schedule, retentionMs };
  return {
    take: async (key, options) => {
      const {
        fingerprint,
        comparesFingerprint = false,
        deadlineMs,
        hasGeneration = false,
        waitMs,
        stop,
        adopt,
      } = options;
      const owner = options.owner ?? newOwner();
      // The ID of the first owner becomes the generation.
      let generation = hasGeneration ? owner : undefined;
      const startMs = clock.now();
      const endMs = Math.min(startMs + waitMs, deadlineMs ?? Number.POSITIVE_INFINITY);
      let pauseMs = shortestPollMs;
      let hasWaited = false;
      for (let nowMs = startMs; ; nowMs = clock.now()) {
        const claim = takenClaim(owner, nowMs, { ...options, generation });
        let record: ClaimRecord | undefined;
        try {
          record = await store.take(key, claim, nowMs);
        } catch {
          // The first call may have succeeded. In that case the second one finds our owner in the
          // record.
          record = await store.take(key, claim, nowMs);
        }
        let verdict = record === undefined ? "mine" : judge(record, owner, clock.now());
        while (verdict === "running" && record !== undefined) {
          if (comparesFingerprint && record.fingerprint !== fingerprint) return { kind: "other" };
          const duplicate = record as ClaimInProgress; // safe: `running` means in progress
          const adoption = adopt?.(duplicate, takenClaim(owner, clock.now(), options));
          if (adoption === undefined) {
            const leftMs = endMs - clock.now();
            if (leftMs <= 0 || stop.some(({ aborted }) => aborted))
              return { kind: "running", record, untilMs: duplicate.leaseUntilMs };
            hasWaited = true;
            await schedule.wait(Math.min(leftMs, pauseMs * (0.5 + schedule.random())), stop);
            pauseMs = Math.min(longestPollMs, pauseMs * 1.5);
          } else if (await adoption) {
            verdict = "mine";
            break;
          }
          record = await store.read(key);
          verdict = judge(record, owner, clock.now());
        }
        if (verdict === "mine") {
          return {
            kind: "taken",
            claim: new HeldClaim(parts, key, owner, { ...options, generation }),
            hasWaited,
          };
        }
        if (verdict === "done") {
          const done = record as CompletedClaim; // safe: only a completed claim is `done`
          return comparesFingerprint && done.fingerprint !== fingerprint
            ? { kind: "other" }
            : { kind: "done", record: done, hasWaited };
        }
        // Taking over an incomplete run inherits its generation. A record that has since ended
        // gives way to a new one.
        if (hasGeneration) generation = record?.status === "INPROGRESS" ? record.generation : owner;
      }
    },
  };
}

interface HoldingParts {
  readonly store: ClaimStore;
  readonly clock: Clock;
  readonly schedule: ClaimSchedule;
  readonly retentionMs: () => number;
}

interface HoldingOptions extends TakeOptions {
  readonly generation: string | undefined;
}

/**
 * A class, because there is one per claim: creating separate functions for each would take most of
 * its time (`write-cpu`).
 */
class HeldClaim implements Claim {
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
