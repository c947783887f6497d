import type { Clock } from "../../base/process/clock.ts";
import type { RateLimitFacts, RatePartition, RateStore } from "./rate-store.ts";
import { windowMs, windowStart } from "./rate-window.ts";

/** Verdict about one request. */
export interface RateVerdict {
  readonly isAdmitted: boolean;
  /** Tokens that this process knows to be left in the window. */
  readonly remaining: number;
  /** End of the window, in epoch milliseconds. */
  readonly resetMs: number;
  /** Tokens that {@link RateCounter.giveBack} returns. */
  readonly share: Share;
  readonly tokens: number;
}

interface RateCounterOptions {
  readonly limit: RateLimitFacts;
  readonly store: Pick<RateStore, "take">;
  readonly clock: Clock;
  /** Maximum number of partitions held in memory. Default 10,000. */
  readonly maxPartitions?: number;
}

/** One window of a partition, as a process knows it. */
interface Share {
  readonly startMs: number;
  /** Tokens leased and not yet used. */
  held: number;
  used: number;
  /** Tokens that waiting requests need. */
  waiting: number;
  /** Tokens that all processes have taken, as far as known. */
  taken: number;
  /** Time until which an empty row is not asked again, in epoch milliseconds. */
  emptyUntilMs: number;
  lease: Promise<boolean> | undefined;
  /** Whether a refusal was reported. */
  isReported: boolean;
}

/** In windows above a minute, a process reads an empty row again: an operator may have reset it. */
const recheckMs = 60_000;
const defaultPartitions = 10_000;

/**
 * Counts the requests of one limit. Each process leases tokens from the row of the window, and uses
 * them without a call.
 *
 * A lease covers the requests that wait and at most as many tokens as the process has already used.
 * So all processes together never hold more than they have used: up to half the number, no request
 * finds an empty row, in any distribution. The further tokens are at most a tenth of the rest, so
 * that few are unused when the row is empty.
 */
export class RateCounter {
  readonly limit: RateLimitFacts;
  readonly #store: Pick<RateStore, "take">;
  readonly #clock: Clock;
  readonly #lengthMs: number;
  readonly #half: number;
  /** Two generations: partitions in neither have not been used for a while. */
  #young = new Map<string, Share>();
  #old = new Map<string, Share>();

  constructor({ limit, store, clock, maxPartitions = defaultPartitions }: RateCounterOptions) {
    this.limit = limit;
    this.#store = store;
    this.#clock = clock;
    this.#lengthMs = windowMs[limit.window];
    this.#half = Math.ceil(maxPartitions / 2);
  }

  /**
   * Takes tokens for a request: immediately if this process holds enough or knows that the row is
   * empty, otherwise with at most one call of the store.
   * @param number - tokens of a window.
   * @throws the errors of the store, in the promise.
   */
  take(
    partition: RatePartition,
    number: number,
    tokens: number,
  ): RateVerdict | Promise<RateVerdict> {
    const nowMs = this.#clock.now();
    const share = this.#shareOf(partition.text, windowStart(this.#lengthMs, nowMs));
    if (share.held >= tokens) return this.#admit(share, number, tokens);
    if (tokens > number || isEmpty(share, number, nowMs))
      return this.#verdict(false, share, number, tokens);
    return this.#takeWaiting(share, partition, number, tokens);
  }

  /** Tokens that this process knows to be left. Does not take any. */
  peek({ text }: RatePartition, number: number): Pick<RateVerdict, "remaining" | "resetMs"> {
    const startMs = windowStart(this.#lengthMs, this.#clock.now());
    const share = this.#young.get(text) ?? this.#old.get(text);
    const resetMs = startMs + this.#lengthMs;
    return { remaining: share?.startMs === startMs ? leftOf(share, number) : number, resetMs };
  }

  /** Returns the tokens of a request that another limit has refused. */
  giveBack({ share, tokens }: RateVerdict): void {
    share.held += tokens;
    share.used -= tokens;
  }

  /** The request stays in the window in which it came: its number is that window's. */
  async #takeWaiting(
    share: Share,
    partition: RatePartition,
    number: number,
    tokens: number,
  ): Promise<RateVerdict> {
    share.waiting += tokens;
    try {
      while (share.lease !== undefined) {
        await share.lease;
        if (share.held >= tokens) return this.#admit(share, number, tokens);
        if (isEmpty(share, number, this.#clock.now()))
          return this.#verdict(false, share, number, tokens);
      }
      share.lease = this.#lease(share, partition, number, tokens).finally(() => {
        share.lease = undefined;
      });
      return this.#verdict(await share.lease, share, number, tokens);
    } finally {
      share.waiting -= tokens;
    }
  }

  /** Leases tokens. The request uses its tokens before any other request can. */
  async #lease(
    share: Share,
    partition: RatePartition,
    number: number,
    tokens: number,
  ): Promise<boolean> {
    const left = Math.max(tokens, number - share.taken);
    const ahead = Math.min(share.used, Math.floor(left / 10));
    const count = Math.min(left, share.waiting - share.held + ahead);
    const row = { ...partition, limit: this.limit, startMs: share.startMs };
    const before = (await this.#store.take(row, count, number)) ?? number;
    share.held += Math.max(0, Math.min(count, number - before));
    share.taken = Math.min(number, before + count); // falls when an operator has reset the row
    const isAdmitted = share.held >= tokens;
    if (isAdmitted) this.#use(share, tokens);
    if (share.taken >= number)
      share.emptyUntilMs =
        this.#lengthMs > recheckMs ? this.#clock.now() + recheckMs : Number.POSITIVE_INFINITY;
    return isAdmitted;
  }

  #admit(share: Share, number: number, tokens: number): RateVerdict {
    this.#use(share, tokens);
    return this.#verdict(true, share, number, tokens);
  }

  #use(share: Share, tokens: number): void {
    share.held -= tokens;
    share.used += tokens;
  }

  #verdict(isAdmitted: boolean, share: Share, number: number, tokens: number): RateVerdict {
    return {
      isAdmitted,
      remaining: leftOf(share, number),
      resetMs: share.startMs + this.#lengthMs,
      share,
      tokens,
    };
  }

  /** Reports once per window and partition. */
  isFirstRefusal({ isAdmitted, share }: RateVerdict): boolean {
    if (isAdmitted || share.isReported) return false;
    share.isReported = true;
    return true;
  }

  #shareOf(text: string, startMs: number): Share {
    const known = this.#young.get(text);
    if (known?.startMs === startMs) return known;
    const older = this.#old.get(text);
    const share =
      known === undefined && older?.startMs === startMs
        ? older
        : {
            ...{ startMs, held: 0, used: 0, waiting: 0, taken: 0, emptyUntilMs: 0 },
            ...{ lease: undefined, isReported: false },
          };
    if (this.#young.size >= this.#half && known === undefined) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(text, share);
    return share;
  }
}

function leftOf({ held, taken }: Share, number: number): number {
  return Math.min(number, held + Math.max(0, number - taken));
}

/** Whether the row is known to have no token left. A raised number makes it unknown. */
function isEmpty(share: Share, number: number, nowMs: number): boolean {
  return share.taken >= number && nowMs < share.emptyUntilMs;
}
