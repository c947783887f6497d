import type { Server } from "../../../app/server/server.ts";
import { windowMs, windowStart } from "../../../parts/limits/rate-window.ts";
import { type Client, ungateCalls } from "../app/faults.ts";
import type { TestAppOptions } from "../app/test-app.ts";
import type { TestClock } from "../app/test-clock.ts";
import { RaceOrder } from "./order.ts";
import { openRaceApp, openRaceStack, type RaceApp, type RaceTenant } from "./race-app.ts";
import { RaceError } from "./race-error.ts";
import {
  RaceMismatch,
  type RaceMove,
  RacePath,
  RaceSearch,
  randomPath,
  seededRandom,
} from "./search.ts";
import { Stillness } from "./stillness.ts";
import { gateRace, type RaceDisturbances, raceTasks } from "./task.ts";
import { RaceTime } from "./time.ts";

/** SDK clients of handlers without keelson. */
export interface RaceClients {
  readonly clients: readonly Client[];
}

/** App of a scenario without keelson. */
export interface RaceFrame extends RaceTenant {
  readonly clock: TestClock;
}

/** Scenario that {@link raceEverywhere} runs in every order. */
export interface RaceScenario<App, Result> extends RaceDisturbances {
  /** Work that runs concurrently. */
  readonly requests: readonly ((app: App) => Promise<Result>)[];
  /** Prepares each order. Default: no preparation. */
  readonly arrange?: (app: App) => Promise<void> | void;
  /** Throws if an order broke a guarantee. `results` has the order of `requests`. */
  readonly check: (
    app: App,
    results: readonly PromiseSettledResult<Result>[],
  ) => Promise<void> | void;
  /** Throws if a guarantee is broken between two moves. Default: nothing is checked. */
  readonly invariant?: (app: App) => Promise<void> | void;
  /** Most preemptions of an order. Default 2. */
  readonly preemptions?: number;
  /** Most orders of the search. Default 2,000. */
  readonly orders?: number;
  /** Random orders after the search. Default 0. */
  readonly walks?: number;
  /** Seed of the random orders. Default 1. */
  readonly seed?: number;
  /** Processes of the server, which the requests are spread over. Default 1. */
  readonly processes?: number;
  /** Order of an earlier failure. Only this order is run. */
  readonly replay?: readonly RaceMove[];
}

/** Orders that {@link raceEverywhere} found without a race. */
export interface RaceResult {
  readonly orders: number;
  /** Whether the search ended because there are no more orders. */
  readonly exhausted: boolean;
  /** Numbers of orders without a preemption, with one, and so on, without random orders. */
  readonly byPreemptions: readonly number[];
}

/** Type of the app that a target's scenario gets. */
export type RaceAppOf<Target> = Target extends RaceClients ? RaceFrame : RaceApp;

const mostWarmUps = 10;

/**
 * Runs concurrent requests in every order of their calls to AWS, with few preemptions first: an
 * order preempts a request if it sends the call of another request although the first could continue. Each
 * order has its own tenant and an empty stack in this process, which the clock, the timers and the
 * random numbers of the requests follow. The clock starts at midnight UTC of the current day, for
 * `{ clients }` at the real time. Awaits without a call are not explored.
 *
 * @throws RaceError with the order in which `check` or `invariant` failed, or no request could
 * continue; Error if the calls of a replay differ; any error of `arrange`.
 * @example
 * await raceEverywhere(server, {
 *   requests: [pay, pay],
 *   check: async (app) => expect(await balanceOf(app)).toBe(500),
 * });
 */
export async function raceEverywhere<Target extends Server | RaceClients, Result>(
  target: Target,
  scenario: RaceScenario<RaceAppOf<Target>, Result> & Omit<TestAppOptions, "webhooks">,
): Promise<RaceResult> {
  const { preemptions = 2, orders = 2_000, walks = 0, seed = 1, replay } = scenario;
  const nowMs = Date.now();
  // So that a replay crosses the same windows of rate limits. AWS checks the time of signed requests.
  const startMs = "clients" in target ? nowMs : windowStart(windowMs.day, nowMs);
  const time = new RaceTime(startMs, () => raceTasks.getStore());
  time.install();
  let opened: OpenedTarget | undefined;
  try {
    opened = await ("clients" in target
      ? openClients(target, time)
      : openServer(target, time, scenario));
    // Safe cast: the type of the app follows from the target.
    const race = scenario as RaceScenario<RaceFrame, Result>;
    const run = (path: RacePath, number: number) =>
      runOrder(opened as OpenedTarget, race, time, path, number);
    await warmUp(() => run(new RacePath([], () => 0), 0));
    if (replay !== undefined) {
      const path = new RacePath(replay, () => -1);
      await run(path, 1);
      return { orders: 1, exhausted: false, byPreemptions: [] };
    }
    const search = new RaceSearch(preemptions);
    let count = 0;
    for (; count < orders; count += 1) {
      const path = search.next();
      if (path === undefined) break;
      await run(path, count + 1);
    }
    const random = seededRandom(seed);
    for (let walk = 0; walk < walks; walk += 1) await run(randomPath(random), count + walk + 1);
    const { isExhausted: exhausted, byPreemptions: found } = search;
    const levels = Number.isFinite(preemptions) ? preemptions + 1 : found.length;
    const byPreemptions = Array.from({ length: levels }, (_, level) => found[level] ?? 0);
    return { orders: count + walks, exhausted, byPreemptions };
  } finally {
    time.uninstall();
    await opened?.close();
  }
}

/** Repeats the order that loads modules until it makes as many calls as the time before. */
async function warmUp(run: () => Promise<number>): Promise<void> {
  let [calls, before] = [await run(), -1];
  for (let again = 0; again < mostWarmUps && calls !== before; again += 1)
    [calls, before] = [await run(), calls];
}

/**
 * Runs one order. Number 0 only loads the modules that requests load lazily: later, a request that
 * loads one would look blocked.
 *
 * @returns the number of calls of its frames.
 */
async function runOrder<Result>(
  target: OpenedTarget,
  scenario: RaceScenario<RaceFrame, Result>,
  time: RaceTime,
  path: RacePath,
  number: number,
): Promise<number> {
  const { requests, arrange, check, invariant } = scenario;
  const tenantId = `tenant-${number}`;
  const as = (roles: readonly string[] = []) => ({ id: "user", tenantId, roles });
  time.restart();
  const { app, close } = await target.open({ tenantId, as });
  const order = new RaceOrder(path, time, namesOf(requests), scenario, new Stillness(number === 0));
  const work = requests.map((request) => () => request(app));
  const load = async () => {
    for (const run of work) await run().catch(() => undefined);
    await Promise.allSettled(work.map((run) => run()));
  };
  try {
    if (arrange !== undefined) {
      await order.frame(() => arrange(app));
      await order.rest();
    }
    // The first order fails as well, with its calls.
    try {
      if (number === 0) await order.frame(load).catch(() => undefined);
      else {
        const results = await order.run(work, invariant && (() => invariant(app)));
        await order.frame(() => check(app, results));
      }
    } catch (error) {
      throw error instanceof RaceMismatch ? error : new RaceError(error, number, path, order.steps);
    }
    return order.framed;
  } finally {
    order.end();
    await close();
  }
}

/** Numbers requests of the same name. */
function namesOf(requests: readonly { readonly name: string }[]): string[] {
  const names = requests.map(({ name }) => name || "request");
  return names.map((name, index) =>
    names.filter((other) => other === name).length === 1
      ? name
      : `${name} ${names.slice(0, index + 1).filter((other) => other === name).length}`,
  );
}

interface OpenedTarget {
  open(tenant: RaceTenant): Promise<{ readonly app: RaceFrame; close(): Promise<void> }>;
  close(): Promise<void>;
}

async function openServer(
  server: Server,
  time: RaceTime,
  { processes = 1, ...options }: TestAppOptions & { readonly processes?: number },
): Promise<OpenedTarget> {
  const stack = await openRaceStack(server, time, options);
  const open = async (tenant: RaceTenant) => {
    const { app, close } = await openRaceApp(stack, tenant, processes);
    return {
      app,
      close: async () => {
        await close();
        await stack.clear();
      },
    };
  };
  return { open, close: stack.close };
}

async function openClients({ clients }: RaceClients, clock: RaceTime): Promise<OpenedTarget> {
  for (const client of clients) gateRace(client);
  return {
    open: async (tenant) => ({ app: { ...tenant, clock }, close: async () => {} }),
    close: async () => {
      for (const client of clients) ungateCalls(client);
    },
  };
}
