import type { Clock } from "../../../base/process/clock.ts";
import type { ConfigRowReader } from "../read/rows.ts";
import { type Ages, type Flight, land, type Outcome, type Page } from "./row-page.ts";

export interface FlightSchedule {
  /** Runs `work` after the current phase of the event loop; misses until then share a fetch. */
  readonly soon: (work: () => void) => void;
  readonly later: (work: () => void, ms: number) => () => void;
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

/** Returns the call that fetches a page; `undefined` during the pause after a slow failure. */
export type FetchPage = (page: Page, nowMs: number) => Flight | undefined;

export const abandonMs = 2_000;

/** DynamoDB's limit for BatchGetItem. More rows make a flight only if one page has them. */
const rowsPerFlight = 100;

/** A failed call that took this long leads to an equal pause: an outage then slows few reads. */
const slowFailureMs = 250;

/** Pages requested at the same moment share one call; a page has at most one call in progress. */
export function createFlights(
  reader: ConfigRowReader,
  ages: Ages,
  clock: Clock,
  schedule: FlightSchedule,
): FetchPage {
  let boarding: Flight | undefined;

  return (page, nowMs) => {
    const known = inTheAir(page, nowMs);
    if (known !== undefined) return known;
    if (isPaused(page, nowMs)) return undefined;
    if (boarding?.pages.includes(page)) {
      // The page lost its flight, which is not launched: another one is not needed.
      page.flight = boarding;
      return boarding;
    }
    const taken = boarding?.addresses.length ?? 0;
    if (boarding === undefined || (taken > 0 && taken + page.keys.length > rowsPerFlight)) {
      const flight = prepare(nowMs);
      boarding = flight;
      schedule.soon(() => launch(flight));
    }
    boarding.pages.push(page);
    boarding.addresses.push(...page.keys.map((key) => ({ partition: page.partition, key })));
    page.flight = boarding;
    return boarding;
  };

  function prepare(askedMs: number): Flight {
    const { promise, resolve } = Promise.withResolvers<void>();
    const flight: Flight = {
      askedMs,
      pages: [],
      addresses: [],
      done: promise,
      failure: undefined,
      settle: (outcome) => {
        if (flight.failure !== undefined) return; // abandoned
        if ("error" in outcome) {
          flight.failure = outcome;
          for (const page of flight.pages) fail(page, flight, outcome.error, clock.now());
        } else {
          const left = [...outcome.rows];
          for (const page of flight.pages) {
            const rows = left.splice(0, page.keys.length);
            land(page, { rows, flight, nowMs: clock.now(), random: schedule.random() }, ages);
          }
        }
        resolve();
      },
    };
    return flight;
  }

  function launch(flight: Flight): void {
    if (boarding === flight) boarding = undefined;
    const tooLate = () =>
      flight.settle({ error: new Error(`reading configuration took longer than ${abandonMs} ms`) });
    const cancel = schedule.later(tooLate, abandonMs);
    const arrive = (outcome: Outcome) => {
      cancel();
      flight.settle(outcome);
    };
    // `async`, so that a synchronous throw also fails the flight.
    (async () => reader.read(flight.addresses, { consistent: false }))().then(
      (rows) => arrive({ rows }),
      (error: unknown) => arrive({ error }),
    );
  }
}

function inTheAir(page: Page, nowMs: number): Flight | undefined {
  const { flight } = page;
  if (flight === undefined || (nowMs >= flight.askedMs && nowMs - flight.askedMs < abandonMs))
    return flight;
  // The process was frozen, so the timer of `abandonMs` did not run: allow a new flight.
  page.flight = undefined;
  return undefined;
}

function fail(page: Page, flight: Flight, error: unknown, nowMs: number): void {
  if (page.flight !== flight) return;
  page.flight = undefined;
  const tookMs = nowMs - flight.askedMs;
  // A longer duration means that the process was frozen, not that the store is slow.
  const isSlow = tookMs >= slowFailureMs && tookMs < 2 * abandonMs;
  const pauseMs = isSlow && page.askedMs !== undefined ? tookMs : 0;
  page.failure = { error, failedMs: nowMs, pauseMs };
}

/** False if the clock was set back to before the failure, because its age is then unknown. */
function isPaused({ failure }: Page, nowMs: number): boolean {
  return (
    failure !== undefined && nowMs >= failure.failedMs && nowMs < failure.failedMs + failure.pauseMs
  );
}
