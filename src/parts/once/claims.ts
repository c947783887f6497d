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
import { type ClaimSchedule, processSchedule } from "./claim-schedule.ts";
import type { ClaimStore } from "./claim-store.ts";
import { type Claim, HeldClaim } from "./held-claim.ts";

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

export interface Claims {
  /** @throws any error of the store, after a second attempt. */
  take(key: ClaimKey, options: TakeOptions): Promise<Taken>;
}

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
