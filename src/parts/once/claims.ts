import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Clock } from "../../base/process/clock.ts";
import { type AnswerCipher, loadAnswer, type WriteAnswer } from "./answer.ts";
import {
  type ClaimInProgress,
  type ClaimKey,
  type ClaimRecord,
  type CompletedClaim,
  defaultRetentionMs,
  expiry,
  extensionSlackMs,
  judge,
  type TakingOptions,
  takenClaim,
} from "./claim.ts";
import { countTaken } from "./claim-counts.ts";
import { assertTakable, keyReused } from "./claim-errors.ts";
import type { ClaimStore } from "./claim-store.ts";
import {
  Claim,
  type ClaimSchedule,
  type HoldingOptions,
  type HoldingParts,
  isStillHeld,
  processSchedule,
} from "./held-claim.ts";
import type { RunLog } from "./run-log.ts";
import type { RunKind } from "./settlement.ts";

export interface OnceClaim {
  readonly kind: RunKind;
  readonly key: ClaimKey;
  /**
   * Whether other work may use the same key after the claim has expired, so that derived IDs need a
   * generation. Default: `true` for a write, `false` for a message.
   */
  readonly hasReusableKey?: boolean | undefined;
  readonly fingerprint?: string | undefined;
  /** Whether the same key with another fingerprint is refused. Default `false`. */
  readonly comparesFingerprint?: boolean;
  /** In milliseconds. Default: five minutes. */
  readonly retentionMs?: number | undefined;
  /** Headers of a replay in addition to the standard ones. */
  readonly replayedHeaders: readonly string[];
  readonly cipher?: AnswerCipher | undefined;
  readonly opener?: Pick<AnswerCipher, "open">;
  readonly deadlineMs: number | undefined;
  /** @throws if the transport cannot send the answer of a write. */
  readonly assertFits?: ((answer: WriteAnswer) => void) | undefined;
}

export interface OnceParts {
  readonly store: ClaimStore;
  readonly claims: Claims;
  readonly clock: Clock;
  readonly pause: (attempt: number) => Promise<void>;
  /** Longest wait of a write for a running duplicate, in milliseconds. Messages do not wait. */
  readonly waitMs: number;
  /** Ends all waits for duplicates. */
  readonly draining: AbortSignal;
  readonly metrics: Metrics | undefined;
  /** `expiresAt` is in epoch seconds. */
  remember(claim: OnceClaim, answer: WriteAnswer, expiresAt: number): void;
}

/** @param nowMs - the time, if the caller has just read the clock. */
export async function take(
  { claims, draining, metrics, waitMs }: OnceParts,
  { signal, log, logPrefix }: RunLog & { readonly signal: AbortSignal | undefined },
  claim: OnceClaim,
  nowMs?: number,
): Promise<Exclude<Taken, { kind: "other" }>> {
  const { kind, key, fingerprint, comparesFingerprint, deadlineMs, retentionMs } = claim;
  const isWrite = kind === "write";
  const taken = await claims.take(key, {
    fingerprint,
    comparesFingerprint,
    deadlineMs,
    retentionMs,
    nowMs,
    waitMs: isWrite ? waitMs : 0,
    stop: signal === undefined ? [draining] : [signal, draining],
    hasGeneration: claim.hasReusableKey ?? isWrite,
  });
  if (taken.kind === "other") throw keyReused();
  if (metrics !== undefined) countTaken(metrics, kind, taken);
  if (isWrite && taken.kind === "taken")
    log.debug(`${logPrefix}.taken`, { waited: taken.hasWaited });
  if (isWrite && taken.kind === "running")
    log.debug(`${logPrefix}.conflicted`, { leaseUntil: new Date(taken.untilMs).toISOString() });
  return taken;
}

export async function replay(
  parts: OnceParts,
  { log, logPrefix }: RunLog,
  claim: OnceClaim,
  { record, hasWaited }: { readonly record: CompletedClaim; readonly hasWaited: boolean },
): Promise<{ readonly kind: "replayed"; readonly answer: WriteAnswer | undefined }> {
  if (claim.kind === "message") {
    await extend(parts, claim, record);
    return { kind: "replayed", answer: undefined };
  }
  const answer = await loadAnswer(parts.store, claim.key, record, claim.opener);
  log.debug(`${logPrefix}.replayed`, { waited: hasWaited });
  parts.remember(claim, answer, record.expiresAt);
  return { kind: "replayed", answer };
}

/** Restarts the retention, because the message may be redelivered again. */
async function extend({ store, clock }: OnceParts, claim: OnceClaim, record: CompletedClaim) {
  // Otherwise, a delivery repeated every hour under a reusable key would extend the claim each time
  // and never be sent again.
  if (claim.hasReusableKey) return;
  const expiresAt = expiry(clock.now(), claim.retentionMs);
  // Most duplicates arrive within seconds, so they cost no write.
  if ((expiresAt - record.expiresAt) * 1000 <= extensionSlackMs) return;
  // If extending fails, the claim still lasts for its original retention.
  await store.extend(claim.key, record.owner, expiresAt).catch(() => undefined);
}

export interface ClaimsOptions {
  readonly store: ClaimStore;
  readonly clock: Clock;
  readonly schedule?: ClaimSchedule;
  readonly newOwner?: () => string;
  /** Retention of a completed claim, in milliseconds. Default 300,000 (specification 3.2). */
  readonly retentionMs?: () => number;
}

export interface TakeOptions extends Omit<TakingOptions, "generation"> {
  /** Whether a record with another fingerprint makes the outcome `other`. Default `false`. */
  readonly comparesFingerprint?: boolean | undefined;
  /** The time, if the caller has just read the clock. */
  readonly nowMs?: number | undefined;
  /** Longest wait for a running duplicate, in milliseconds. Never lasts beyond `deadlineMs`. */
  readonly waitMs: number;
  /** Signals that end the wait. */
  readonly stop: readonly AbortSignal[];
  /** Retention after completion, in milliseconds. Default: see {@link ClaimsOptions}. */
  readonly retentionMs?: number | undefined;
  /** Default: a new random ID. */
  readonly owner?: string;
  /** Whether the claim gets a generation, as IDs under a reusable key need. Default `false`. */
  readonly hasGeneration?: boolean;
  /**
   * Replaces `record`, a claim in progress, with `claim`. Returns `undefined` if the taker may not
   * do so; resolves to `false` if the record has changed in the meantime.
   */
  adopt?(record: ClaimInProgress, claim: ClaimInProgress): Promise<boolean> | undefined;
}

export type Taken =
  | { readonly kind: "taken"; readonly claim: Claim; readonly hasWaited: boolean }
  | { readonly kind: "done"; readonly record: CompletedClaim; readonly hasWaited: boolean }
  | { readonly kind: "other" } // the key was used for other work
  /** A duplicate is still running. Its lease ends at `untilMs` unless it is renewed. */
  | { readonly kind: "running"; readonly record: ClaimRecord; readonly untilMs: number };

export interface Claims {
  /** @throws any error of the store, after a second attempt; the error of `assertTakable`. */
  take(key: ClaimKey, options: TakeOptions): Promise<Taken>;
}

/** First and longest pause between reads of a duplicate's claim, in milliseconds, without jitter. */
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
 * | `running` | adopts the claim; otherwise waits and reads it again, or returns the record |
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
  readonly #holding: HoldingOptions;
  #pauseMs = shortestPollMs;
  #waitedMs = 0; // a clock that was set back must not prolong the wait

  constructor(parts: HoldingParts, key: ClaimKey, owner: string, options: TakeOptions) {
    const { waitMs, nowMs, fingerprint, deadlineMs, execution, heldMs, retentionMs } = options;
    this.#parts = parts;
    this.#key = key;
    this.#owner = owner;
    this.#options = options;
    this.#startMs = nowMs ?? parts.clock.now();
    this.#endMs = Math.min(this.#startMs + waitMs, deadlineMs ?? Number.POSITIVE_INFINITY);
    const generation = options.hasGeneration ? owner : undefined; // of the first owner
    this.#holding = { fingerprint, generation, deadlineMs, execution, heldMs, retentionMs };
  }

  async taken(): Promise<Taken> {
    const { clock, schedule, store } = this.#parts;
    const { adopt, stop } = this.#options;
    let found = await this.#put(this.#startMs);
    for (let frees = 0; ; frees = found.kind === "free" ? frees + 1 : 0) {
      switch (found.kind) {
        case "mine":
          return this.#held();
        case "done":
          return { ...found, hasWaited: this.#waitedMs > 0 };
        case "other":
          return { kind: "other" };
        case "running": {
          const { record } = found;
          const adoption = adopt?.(record, takenClaim(this.#owner, clock.now(), this.#options));
          if (adoption !== undefined && (await adoption)) return this.#held();
          if (adoption === undefined && !(await this.#waited()))
            return { kind: "running", record, untilMs: record.leaseUntilMs };
          found = this.#found(await store.read(this.#key));
          break;
        }
        case "free":
          assertTakable(this.#key, frees);
          this.#inherit(found.record);
          // A transaction that checks the claim may refuse to have it taken until it has ended.
          await (frees > 0 ? schedule.wait(shortestPollMs, stop) : undefined);
          found = await this.#put(clock.now());
      }
    }
  }

  async #put(nowMs: number): Promise<Found> {
    const { store, schedule } = this.#parts;
    const claim = takenClaim(this.#owner, nowMs, this.#holding);
    const startMs = schedule.now();
    let record: ClaimRecord | undefined;
    try {
      record = await store.take(this.#key, claim, nowMs);
    } catch {
      // The failed call may have stored the claim. Then this one finds its owner in the record.
      record = await store.take(this.#key, claim, nowMs);
    }
    const found: Found = record === undefined ? { kind: "mine" } : this.#found(record);
    if (found.kind !== "mine") return found;
    const isOurs = isStillHeld(this.#parts, this.#key, this.#owner, this.#holding, startMs);
    return isOurs === true || (await isOurs) ? found : this.#found(await store.read(this.#key));
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
    const claim = new Claim(this.#parts, this.#key, this.#owner, this.#holding);
    return { kind: "taken", claim, hasWaited: this.#waitedMs > 0 };
  }

  /** Returns `false` immediately if the wait has ended. */
  async #waited(): Promise<boolean> {
    const { clock, schedule } = this.#parts;
    const { stop, waitMs } = this.#options;
    const leftMs = Math.min(this.#endMs - clock.now(), waitMs - this.#waitedMs);
    if (leftMs <= 0 || stop.some(({ aborted }) => aborted)) return false;
    const pauseMs = Math.min(leftMs, this.#pauseMs * (0.5 + schedule.random()));
    this.#waitedMs += pauseMs;
    await schedule.wait(pauseMs, stop);
    this.#pauseMs = Math.min(longestPollMs, this.#pauseMs * 1.5);
    return true;
  }

  #inherit(record: ClaimRecord | undefined): void {
    if (record?.status === "INPROGRESS") this.#holding.generation = record.generation;
    else if (this.#options.hasGeneration) this.#holding.generation = this.#owner;
  }
}
