import type { Clock } from "../../../base/process/clock.ts";
import type { ConfigRowReader, RowAddress } from "../read/rows.ts";
import { type Ages, land, type Page } from "./row-page.ts";

/** How flights are started and given up; a test brings its own. */
export interface FlightSchedule {
  /** Runs `work` once what happens now is over: misses until then are fetched together. */
  readonly soon: (work: () => void) => void;
  /** Runs `work` after `ms` milliseconds, unless the returned function is called before. */
  readonly later: (work: () => void, ms: number) => () => void;
  /** From 0 to 1. */
  readonly random: () => number;
}

/** The event loop, timers and randomness of the process. */
export const processSchedule: FlightSchedule = Object.freeze({
  soon: (work: () => void) => void setImmediate(work),
  later: (work: () => void, ms: number) => {
    const timer = setTimeout(work, ms);
    return () => clearTimeout(timer);
  },
  random: () => Math.random(),
});

/** One call of the store for the pages of one moment. */
export interface Flight {
  readonly askedMs: number;
  /** Resolves when it has landed, has failed, or is abandoned; never rejects. */
  readonly done: Promise<void>;
  /** Why it failed, once `done` resolved. */
  failure: { readonly error: unknown } | undefined;
}

/** Fetches pages. */
export interface Flights {
  /** The flight that fetches the page: the one in the air, else one about to start; `undefined` in the pause after a slow failure. */
  fetch(page: Page, nowMs: number): Flight | undefined;
}

/** Beyond this a flight is abandoned: what still arrives of it is dropped. */
export const abandonMs = 2_000;

/** As many rows as one BatchGetItem takes. */
const rowsPerFlight = 100;

/** A failure that took this long is followed by a pause of the same length, so that an outage does not slow every read down. */
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

/** Makes the flights of one cache: pages missed in the same moment share one, and a page has one at a time. */
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
    // `async`, so that a reader that throws at once is a failed flight too.
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
    // Safe: `fetch` is the only one who sets it.
    const flight = page.flight as PreparedFlight | undefined;
    if (flight === undefined || (nowMs >= flight.askedMs && nowMs - flight.askedMs < abandonMs))
      return flight;
    // No timer ran: the process was frozen meanwhile. No pause follows; the page gets a new flight.
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
  // Longer than any flight: the process was frozen, which says nothing of the store.
  const isSlow = tookMs >= slowFailureMs && tookMs < 2 * abandonMs;
  page.failure = {
    error,
    pausedUntilMs: isSlow && page.askedMs !== undefined ? nowMs + tookMs : nowMs,
  };
}
