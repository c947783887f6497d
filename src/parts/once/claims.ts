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

/** What taking claims works with; a test gives it a clock, timers and randomness of its own. */
export interface ClaimsOptions {
  readonly store: ClaimStore;
  readonly clock: Clock;
  readonly schedule?: ClaimSchedule;
  readonly newOwner?: () => string;
  /** How long a completed claim is retained, in milliseconds. Default 300,000 (specification 3.2). */
  readonly retentionMs?: () => number;
}

/** Timers of claims. */
export interface ClaimSchedule {
  /** Resolves after `ms`, or as soon as one of the signals is aborted. */
  wait(ms: number, stop: readonly AbortSignal[]): Promise<void>;
  /** Calls `task`, which never fails, each `ms` until the returned function is called. */
  repeat(ms: number, task: () => Promise<void>): () => void;
  /** From 0 to 1. */
  random(): number;
}

/** How a claim is taken. */
export interface TakeOptions {
  readonly fingerprint?: string | undefined;
  /** Whether a record for another fingerprint is refused, rather than taken for a duplicate. */
  readonly comparesFingerprint?: boolean;
  /** When the process will be gone, in milliseconds since the epoch: no lease and no waiting goes beyond. */
  readonly deadlineMs?: number | undefined;
  /** How long to wait for a duplicate in flight, in milliseconds. */
  readonly waitMs: number;
  /** End the waiting: the process drains, or the callers have gone. */
  readonly stop: readonly AbortSignal[];
  /** How long it is retained once it is completed, in milliseconds. Default: that of {@link ClaimsOptions}. */
  readonly retentionMs?: number | undefined;
  /** Who takes it. Default: a new owner. */
  readonly owner?: string;
  /** Whether the claim has a generation: IDs are derived from it, and other work may have its key later. Default `false`. */
  readonly hasGeneration?: boolean;
  /** The durable execution it is taken for, hashed. */
  readonly execution?: string | undefined;
  /** How long the claim is held without renewal, in milliseconds: no process renews it between two invocations. */
  readonly heldMs?: number | undefined;
  /**
   * Puts `claim` in the place of one in progress that its taker may go on with: `undefined` where it may not, `false`
   * where the record has changed since.
   */
  adopt?(record: ClaimInProgress, claim: ClaimInProgress): Promise<boolean> | undefined;
}

/** The result of taking a claim. */
export type Taken =
  | { readonly kind: "taken"; readonly claim: Claim; readonly hasWaited: boolean }
  | { readonly kind: "done"; readonly record: CompletedClaim; readonly hasWaited: boolean }
  /** The same key stands for other work. */
  | { readonly kind: "other" }
  /** A duplicate is still running; its lease lasts until `untilMs`, unless it is renewed. */
  | { readonly kind: "running"; readonly record: ClaimRecord; readonly untilMs: number };

/** A claim that this process holds. */
export interface Claim {
  readonly key: ClaimKey;
  readonly owner: string;
  readonly fingerprint: string | undefined;
  readonly generation: string | undefined;
  /** How long it is retained once it is completed, in milliseconds. */
  retentionMs(): number;
  /** The text that IDs are derived from: the same for a run that repeats this one, another for later work under the same key. */
  seed(): string;
  /** Whether another owner was seen in its place. */
  isLost(): boolean;
  /** Another owner was seen in its place. */
  lose(): void;
  /** Stores the result; `false` if another owner has taken the claim over. */
  complete(result: StoredResult | undefined): Promise<boolean>;
  /** Lets the work be done again. */
  release(): Promise<void>;
  /** Stops renewing, without a call: the lease ends by itself. */
  abandon(): void;
  /** Stops renewing while `work` runs, which writes the record itself. */
  paused<Result>(work: () => Promise<Result>): Promise<Result>;
}

/** Takes claims. */
export interface Claims {
  /** @throws whatever the store throws, after a second attempt. */
  take(key: ClaimKey, options: TakeOptions): Promise<Taken>;
}

/** How often a lease is renewed: twice may fail. */
const renewMs = leaseMs / 3;
/** The pauses between two looks at a duplicate's claim, in milliseconds. */
const [shortestPollMs, longestPollMs] = [40, 500];

/** Creates {@link Claims} over a store. */
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
      // The first owner names the generation.
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
          // It may have arrived all the same: then this finds its owner, which is ours.
          record = await store.take(key, claim, nowMs);
        }
        let verdict = record === undefined ? "mine" : judge(record, owner, clock.now());
        while (verdict === "running" && record !== undefined) {
          if (comparesFingerprint && record.fingerprint !== fingerprint) return { kind: "other" };
          const duplicate = record as ClaimInProgress; // safe: nothing else is running
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
          const done = record as CompletedClaim; // safe: nothing else is done
          return comparesFingerprint && done.fingerprint !== fingerprint
            ? { kind: "other" }
            : { kind: "done", record: done, hasWaited };
        }
        // A run that did not complete is taken over with its generation; what has ended since gives way to a new one.
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

/** A class, since there is one for every claim: functions of its own would take most of its time (`write-cpu`). */
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
    // If only the response was lost, the record is complete: the second attempt finds its own owner there.
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
    // Nothing refers to a generation that no ID was derived from.
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
    // Without this, work that never ends, such as a suspended durable execution, would be renewed for ever.
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
      // The next renewal makes up for one that failed; the lease allows for two.
    }
  }
}

/** The timers of this process. */
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
