import type { Clock } from "../../../base/process/clock.ts";
import type { ConfigRowReader, RowAddress } from "../read/rows.ts";
import { type Ages, land, type Page } from "./row-page.ts";

/** Timing and randomness of flights. Tests pass their own. */
export interface FlightSchedule {
  /**
   * Runs `work` after the current phase of the event loop. All misses until then share one fetch.
   */
  readonly soon: (work: () => void) => void;
  /** Runs `work` after `ms` milliseconds, unless the returned function is called first. */
  readonly later: (work: () => void, ms: number) => () => void;
  /** Returns a number from 0 to 1. */
  readonly random: () => number;
}

/** Event loop, timers and randomness of the process. */
export const processSchedule: FlightSchedule = Object.freeze({
  soon: (work: () => void) => void setImmediate(work),
  later: (work: () => void, ms: number) => {
    const timer = setTimeout(work, ms);
    return () => clearTimeout(timer);
  },
  random: () => Math.random(),
});

/** Single call to the store that fetches all pages missed at the same moment. */
export interface Flight {
  readonly askedMs: number;
  /** Resolves when the flight succeeds, fails or is abandoned. Never rejects. */
  readonly done: Promise<void>;
  /** Reason of a failure, set before `done` resolves. */
  failure: { readonly error: unknown } | undefined;
}

export interface Flights {
  /**
   * Returns the flight that fetches the page: the one in flight, otherwise one about to start.
   * Returns `undefined` during the pause after a slow failure.
   */
  fetch(page: Page, nowMs: number): Flight | undefined;
}

/** Timeout of a flight, in milliseconds. A response that arrives later is dropped. */
export const abandonMs = 2_000;

/** Maximum number of rows in one BatchGetItem call. */
const rowsPerFlight = 100;

/**
 * Duration from which a failure counts as slow, in milliseconds. A pause of the same length as the
 * failed call follows, so that an outage does not slow down every read.
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

/**
 * Creates the flights of one cache. Pages missed at the same moment share a flight, and each page
 * has at most one flight at a time.
 */
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
    // `async`, so that a reader that throws synchronously also counts as a failed flight.
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
    // The timer did not run because the process was frozen. The page gets a new flight without a
    // pause.
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
  // A longer duration means that the process was frozen. It does not indicate a slow store.
  const isSlow = tookMs >= slowFailureMs && tookMs < 2 * abandonMs;
  page.failure = {
    error,
    pausedUntilMs: isSlow && page.askedMs !== undefined ? nowMs + tookMs : nowMs,
  };
}
