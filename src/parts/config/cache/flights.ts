import type { Clock } from "../../../base/process/clock.ts";
import type { ConfigRowReader, RowAddress } from "../read/rows.ts";
import { type Ages, land, type Page } from "./row-page.ts";

export interface FlightSchedule {
  /**
   * Runs `work` after the current phase of the event loop; all misses until then share one fetch.
   */
  readonly soon: (work: () => void) => void;
  /** Runs `work` after `ms`, unless the returned function is called first. */
  readonly later: (work: () => void, ms: number) => () => void;
  /** From 0 to 1. */
  readonly random: () => number;
}

export const processSchedule: FlightSchedule = Object.freeze({
  soon: (work: () => void) => void setImmediate(work),
  later: (work: () => void, ms: number) => {
    const timer = setTimeout(work, ms);
    return () => clearTimeout(timer);
  },
  random: () => Math.random(),
});

/** One call to the store, for all pages missed at the same moment. */
export interface Flight {
  readonly askedMs: number;
  /** Never rejects, even if the flight fails or is abandoned. */
  readonly done: Promise<void>;
  /** Set before `done` resolves. */
  failure: { readonly error: unknown } | undefined;
}

export interface Flights {
  /**
   * The flight in progress, otherwise one about to start; `undefined` during the pause after a slow
   * failure.
   */
  fetch(page: Page, nowMs: number): Flight | undefined;
}

/** A response that arrives later is dropped. */
export const abandonMs = 2_000;

/** Limit of BatchGetItem. */
const rowsPerFlight = 100;

/**
 * From this duration a failure is followed by a pause of the same length, so that an outage does
 * not slow down every read.
 */
const slowFailureMs = 250;

interface PreparedFlight extends Flight {
  readonly pages: Page[];
  readonly addresses: RowAddress[];
  readonly settle: (
    outcome:
      | { readonly error: unknown }
      | { readonly rows: Awaited<ReturnType<ConfigRowReader["read"]>> },
  ) => void;
}

/** Pages missed at the same moment share a flight; each page has at most one at a time. */
export function createFlights(
  reader: ConfigRowReader,
  ages: Ages,
  clock: Clock,
  schedule: FlightSchedule,
): Flights {
  let boarding: PreparedFlight | undefined;

  const launch = (flight: PreparedFlight) => {
    if (boarding === flight) boarding = undefined;
    const cancel = schedule.later(
      () =>
        flight.settle({
          error: new Error(`reading configuration took longer than ${abandonMs} ms`),
        }),
      abandonMs,
    );
    const arrive = (outcome: Parameters<PreparedFlight["settle"]>[0]) => {
      cancel();
      flight.settle(outcome);
    };
    // `async`: a reader that throws synchronously also counts as a failed flight.
    (async () => reader.read(flight.addresses, { consistent: false }))().then(
      (rows) => arrive({ rows }),
      (error: unknown) => arrive({ error }),
    );
  };

  const prepare = (askedMs: number): PreparedFlight => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let isSettled = false;
    const flight: PreparedFlight = {
      askedMs,
      done: promise,
      failure: undefined,
      pages: [],
      addresses: [],
      settle: (outcome) => {
        if (isSettled) return;
        isSettled = true;
        if ("error" in outcome) {
          flight.failure = outcome;
          for (const page of flight.pages) fail(page, flight, outcome.error, clock.now());
        } else {
          let at = 0;
          for (const page of flight.pages) {
            const rows = outcome.rows.slice(at, at + page.keys.length);
            at += page.keys.length;
            land(
              page,
              { rows, flight, askedMs, nowMs: clock.now(), random: schedule.random() },
              ages,
            );
          }
        }
        resolve();
      },
    };
    return flight;
  };

  const inTheAir = (page: Page, nowMs: number): Flight | undefined => {
    // Safe: only `fetch` sets it.
    const flight = page.flight as PreparedFlight | undefined;
    if (flight === undefined || (nowMs >= flight.askedMs && nowMs - flight.askedMs < abandonMs))
      return flight;
    // The process was frozen, so the timer did not run. The page gets a new flight without a pause.
    page.flight = undefined;
    return undefined;
  };

  return {
    fetch: (page, nowMs) => {
      const known = inTheAir(page, nowMs);
      if (known !== undefined) return known;
      if (page.failure !== undefined && nowMs < page.failure.pausedUntilMs) return undefined;
      if (
        boarding === undefined ||
        (boarding.addresses.length > 0 &&
          boarding.addresses.length + page.keys.length > rowsPerFlight)
      ) {
        const flight = prepare(nowMs);
        boarding = flight;
        schedule.soon(() => launch(flight));
      }
      boarding.pages.push(page);
      boarding.addresses.push(...page.keys.map((key) => ({ partition: page.partition, key })));
      page.flight = boarding;
      return boarding;
    },
  };
}

function fail(page: Page, flight: Flight, error: unknown, nowMs: number): void {
  if (page.flight !== flight) return;
  page.flight = undefined;
  const tookMs = nowMs - flight.askedMs;
  // Longer means that the process was frozen, not that the store is slow.
  const isSlow = tookMs >= slowFailureMs && tookMs < 2 * abandonMs;
  page.failure = {
    error,
    pausedUntilMs: isSlow && page.askedMs !== undefined ? nowMs + tookMs : nowMs,
  };
}
