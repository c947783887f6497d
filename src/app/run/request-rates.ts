import type { Clock } from "../../base/process/clock.ts";
import type { RateCounter, RateVerdict } from "../../parts/limits/rate-counter.ts";
import { exposedRateHeaders, rateHeaders, type SentRate } from "../../parts/limits/rate-headers.ts";
import { partitionOf, type RateCaller } from "../../parts/limits/rate-partition.ts";
import type { RatePartition } from "../../parts/limits/rate-store.ts";
import { windowMs } from "../../parts/limits/rate-window.ts";
import type { PlacedRate } from "../registry/rate-limits.ts";
import type { HeldRates } from "../runtime/rate-limiting.ts";

/** A limit with its counter in this process. */
export interface CountedRate extends PlacedRate {
  readonly counter: RateCounter;
}

/** One request and one limit. */
export interface Wanted {
  readonly rate: CountedRate;
  readonly partition: RatePartition;
  readonly number: number;
}

/** One limit, and its verdict, which is absent while the store fails. */
export interface Taken extends Wanted {
  readonly verdict: RateVerdict | undefined;
}

const exposed = "access-control-expose-headers";

interface RatedRequest {
  readonly clock: Clock;
  /** Limits of the route. */
  readonly rates: readonly CountedRate[];
  /** Returns the caller as far as known. */
  readonly caller: () => RateCaller;
}

/** The limits of a route that one request is held against. */
export class RequestRates implements HeldRates {
  readonly #request: RatedRequest;
  readonly #taken: Taken[] = [];
  #isGivenBack = false;

  constructor(request: RatedRequest) {
    this.#request = request;
  }

  add(taken: readonly Taken[]): void {
    this.#taken.push(...taken);
  }

  giveBack(): void {
    this.#isGivenBack = true;
    for (const { rate, verdict } of this.#taken)
      if (verdict?.isAdmitted === true) rate.counter.giveBack(verdict);
  }

  addTo(headers: Record<string, string>): void {
    const sent = this.#taken.flatMap(({ rate, number, verdict }) => {
      if (verdict === undefined) return [];
      const { isAdmitted, remaining, resetMs, tokens } = verdict;
      const back = this.#isGivenBack && isAdmitted ? tokens : 0;
      const length = windowMs[rate.facts.window];
      return [{ name: rate.name, number, windowMs: length, remaining: remaining + back, resetMs }];
    });
    sent.push(...this.#unchecked());
    if (sent.length === 0) return;
    Object.assign(headers, rateHeaders(sent, this.#request.clock.now()));
    if (headers[exposed] !== undefined) headers[exposed] += `, ${exposedRateHeaders}`;
  }

  /**
   * Limits of a request that was refused before it was held against them. The number of a key and
   * the result of a function are not known by then.
   */
  *#unchecked(): Generator<SentRate> {
    const checked = new Set(this.#taken.map(({ rate }) => rate));
    for (const rate of this.#request.rates) {
      const { per, requests: number } = rate.limit;
      if (checked.has(rate) || typeof per === "function" || typeof number !== "number") continue;
      const left = rate.counter.peek(partitionOf(per, this.#request.caller()), number);
      yield { name: rate.name, number, windowMs: windowMs[rate.facts.window], ...left };
    }
  }
}
