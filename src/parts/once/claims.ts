import type { Clock } from "../../base/process/clock.ts";
import {
  type ClaimInProgress,
  type ClaimKey,
  type ClaimRecord,
  type CompletedClaim,
  defaultRetentionMs,
  judge,
  takenClaim,
} from "./claim.ts";
import type { ClaimStore } from "./claim-store.ts";
import { Claim, type ClaimSchedule, type HoldingParts, processSchedule } from "./held-claim.ts";

export interface ClaimsOptions {
  readonly store: ClaimStore;
  readonly clock: Clock;
  readonly schedule?: ClaimSchedule;
  readonly newOwner?: () => string;
  /**
   * Returns a completed claim's retention, in milliseconds. Default 300,000 (specification 3.2).
   */
  readonly retentionMs?: () => number;
}

export interface TakeOptions {
  readonly fingerprint?: string | undefined;
  /** Whether a record with another fingerprint makes the outcome `other`. Default `false`. */
  readonly comparesFingerprint?: boolean;
  /** End of the process, in epoch milliseconds. No lease and no wait extends beyond it. */
  readonly deadlineMs?: number | undefined;
  /** Longest wait for a running duplicate, in milliseconds. */
  readonly waitMs: number;
  /** Signals that end the wait: the process drains, or the callers have disconnected. */
  readonly stop: readonly AbortSignal[];
  /**
   * Retention after completion, in milliseconds. Default: `retentionMs` of {@link ClaimsOptions}.
   */
  readonly retentionMs?: number | undefined;
  /** ID of the owner. Default: a new random ID. */
  readonly owner?: string;
  /** Whether the claim gets a generation, as IDs under a reusable key need. Default `false`. */
  readonly hasGeneration?: boolean;
  readonly execution?: string | undefined;
  /** Fixed lease of a durable execution, in milliseconds. Nothing renews it between invocations. */
  readonly heldMs?: number | undefined;
  /**
   * Replaces `record`, a claim in progress, with `claim`. Returns `undefined` if the taker may not
   * do so; resolves to `false` if the record has changed in the meantime.
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

export interface Claims {
  /** @throws any error of the store, after a second attempt. */
  take(key: ClaimKey, options: TakeOptions): Promise<Taken>;
}

/**
 * Initial and longest pause between reads of a duplicate's claim, in milliseconds, before jitter.
 */
const [shortestPollMs, longestPollMs] = [40, 500];

export function createClaims({
  store,
  clock,
  schedule = processSchedule,
  newOwner = () => crypto.randomUUID(),
  retentionMs = () => defaultRetentionMs,
}: ClaimsOptions): Claims {
  const parts = { store, clock, schedule, retentionMs };
  return {
    take: (key, options) => new Taking(parts, key, options.owner ?? newOwner(), options).taken(),
  };
}

/**
 * State of a key that a run wants to claim, and the next step:
 *
 * | state | next step |
 * |---|---|
 * | `mine` | returns the claim |
 * | `done` | returns the record |
 * | `other`: another fingerprint | refuses the key |
 * | `running` | adopts the claim; else waits and reads it again, or returns the record |
 * | `free` | takes the claim, with the generation of an incomplete run that it takes over |
 */
type Found =
  | { readonly kind: "mine" | "other" }
  | { readonly kind: "done"; readonly record: CompletedClaim }
  | { readonly kind: "running"; readonly record: ClaimInProgress }
  | { readonly kind: "free"; readonly record: ClaimRecord | undefined };

class Taking {
  readonly #parts: HoldingParts;
  readonly #key: ClaimKey;
  readonly #owner: string;
  readonly #options: TakeOptions;
  readonly #startMs: number;
  readonly #endMs: number;
  #generation: string | undefined;
  #pauseMs = shortestPollMs;
  #hasWaited = false;

  constructor(parts: HoldingParts, key: ClaimKey, owner: string, options: TakeOptions) {
    const { waitMs, deadlineMs = Number.POSITIVE_INFINITY, hasGeneration = false } = options;
    this.#parts = parts;
    this.#key = key;
    this.#owner = owner;
    this.#options = options;
    this.#startMs = parts.clock.now();
    this.#endMs = Math.min(this.#startMs + waitMs, deadlineMs);
    // The first owner's ID serves as the generation.
    this.#generation = hasGeneration ? owner : undefined;
  }

  async taken(): Promise<Taken> {
    let found = await this.#put(this.#startMs);
    for (;;) {
      switch (found.kind) {
        case "mine":
          return this.#held();
        case "done":
          return { ...found, hasWaited: this.#hasWaited };
        case "other":
          return { kind: "other" };
        case "running": {
          const { record } = found;
          const adoption = this.#adopted(record);
          if (adoption !== undefined && (await adoption)) return this.#held();
          if (adoption === undefined && !(await this.#waited()))
            return { kind: "running", record, untilMs: record.leaseUntilMs };
          found = this.#found(await this.#parts.store.read(this.#key));
          break;
        }
        case "free":
          this.#inherit(found.record);
          found = await this.#put(this.#parts.clock.now());
      }
    }
  }

  async #put(nowMs: number): Promise<Found> {
    const { store } = this.#parts;
    const claim = takenClaim(this.#owner, nowMs, this.#taking());
    // A failed call may have stored the claim. The second call then finds this owner in the record.
    const record = await store
      .take(this.#key, claim, nowMs)
      .catch(() => store.take(this.#key, claim, nowMs));
    return record === undefined ? { kind: "mine" } : this.#found(record);
  }

  #found(record: ClaimRecord | undefined): Found {
    const { fingerprint, comparesFingerprint = false } = this.#options;
    const verdict = judge(record, this.#owner, this.#parts.clock.now());
    if (record === undefined || verdict === "free") return { kind: "free", record };
    if (verdict === "mine") return { kind: "mine" };
    if (comparesFingerprint && record.fingerprint !== fingerprint) return { kind: "other" };
    return record.status === "COMPLETED" ? { kind: "done", record } : { kind: "running", record };
  }

  #held(): Taken {
    const claim = new Claim(this.#parts, this.#key, this.#owner, this.#taking());
    return { kind: "taken", claim, hasWaited: this.#hasWaited };
  }

  #adopted(record: ClaimInProgress): Promise<boolean> | undefined {
    const { adopt } = this.#options;
    return adopt?.(record, takenClaim(this.#owner, this.#parts.clock.now(), this.#options));
  }

  /** Pauses before the next read. Returns `false` at once if the wait is over. */
  async #waited(): Promise<boolean> {
    const { clock, schedule } = this.#parts;
    const { stop } = this.#options;
    const leftMs = this.#endMs - clock.now();
    if (leftMs <= 0 || stop.some(({ aborted }) => aborted)) return false;
    this.#hasWaited = true;
    await schedule.wait(Math.min(leftMs, this.#pauseMs * (0.5 + schedule.random())), stop);
    this.#pauseMs = Math.min(longestPollMs, this.#pauseMs * 1.5);
    return true;
  }

  /** Inherits the generation of an incomplete run, or starts a new one. */
  #inherit(record: ClaimRecord | undefined): void {
    if (this.#options.hasGeneration !== true) return;
    this.#generation = record?.status === "INPROGRESS" ? record.generation : this.#owner;
  }

  #taking(): TakeOptions & { readonly generation: string | undefined } {
    return { ...this.#options, generation: this.#generation };
  }
}
