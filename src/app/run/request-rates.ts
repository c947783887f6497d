import type { Clock } from "../../base/process/clock.ts";
import type { RateCounter, RateVerdict } from "../../parts/limits/rate-counter.ts";
import { exposedRateHeaders, rateHeaders } from "../../parts/limits/rate-headers.ts";
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

/** The limits that one request was held against. */
export class RequestRates implements HeldRates {
  readonly #clock: Clock;
  readonly #taken: Taken[] = [];
  #isGivenBack = false;

  constructor(clock: Clock) {
    this.#clock = clock;
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
    if (sent.length === 0) return;
    Object.assign(headers, rateHeaders(sent, this.#clock.now()));
    if (headers[exposed] !== undefined) headers[exposed] += `, ${exposedRateHeaders}`;
  }
}
