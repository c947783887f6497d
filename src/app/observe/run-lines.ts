import type { RequestLines } from "../../base/log/log-options.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { Variables } from "../../base/process/environment.ts";
import { isStartedOnDemand } from "../../base/process/platform.ts";
import type { RunCost } from "../../base/request/ambient.ts";
import type { ObservedRun, RequestEnd, RunEnd, RunObserver, TaskEnd } from "./run-observer.ts";

interface RunLinesOptions {
  readonly requests?: RequestLines | undefined;
  /** Whether lines have the consumption of their run. Default `false`. */
  readonly cost?: boolean | undefined;
  /** Clock for durations. Default: the machine's clock. */
  readonly clock?: Clock | undefined;
  readonly coldStart: ColdStart;
}

export interface ColdStart {
  /** Whether the next request is the first of the process, apart from routine polls. */
  isNext: boolean;
}

/**
 * As in Powertools, no request is a cold start if Lambda initialized the environment before, for
 * example with provisioned concurrency.
 */
export function createColdStart(variables: Variables): ColdStart {
  return { isNext: isStartedOnDemand(variables) };
}

/**
 * Creates an observer that writes one line per run, at its end. Returns `undefined` if `requests`
 * is `false`.
 */
export function createRunLines({
  requests = true,
  ...options
}: RunLinesOptions): RunObserver | undefined {
  return requests === false ? undefined : new RunLines(requests, options);
}

class RunLines implements RunObserver {
  readonly #requests: Exclude<RequestLines, false>;
  readonly #clock: Clock | undefined;
  readonly #coldStart: ColdStart;
  readonly #leastCost: RunCost | undefined;

  constructor(
    requests: Exclude<RequestLines, false>,
    { clock, coldStart, cost }: Omit<RunLinesOptions, "requests">,
  ) {
    this.#requests = requests;
    this.#clock = clock;
    this.#coldStart = coldStart;
    this.#leastCost = cost ? { readUnits: 0, writeUnits: 0, messageBytes: 0 } : undefined;
  }

  ended(run: ObservedRun, end: RunEnd): void {
    if (end.kind === "request") this.#request(run, end);
    else this.#task(run, end);
  }

  #request(run: ObservedRun, { method, status, bytes, isAborted }: RequestEnd): void {
    const { route, isReplayed, isColdStart } = run;
    if (isPoll(run, status)) {
      this.#coldStart.isNext ||= isColdStart;
      return;
    }
    const durationMs = this.#since(run.startMs);
    if (!this.#isWanted(durationMs, status >= 400 || isAborted)) return;
    const data = this.#withCost(run, {
      method: method?.slice(0, longestMethod),
      route: route?.slice(route.indexOf(" ") + 1),
      status,
      durationMs,
      bytes,
      replayed: isReplayed,
      coldStart: isColdStart,
      aborted: isAborted || undefined,
    });
    run.log.info("request.completed", data);
  }

  #task(
    run: ObservedRun,
    { kind, outcome, attempt, sinceMs, event, channel, afterMs }: TaskEnd,
  ): void {
    const { startMs, isReplayed } = run;
    const durationMs = this.#since(startMs);
    if (!this.#isWanted(durationMs, outcome === "failed")) return;
    // These runs did nothing, because another process does or did the work. At level info, each run
    // of a schedule would add such a line in every other process.
    const level = kind !== "run" && (isReplayed || outcome === "handed-back") ? "debug" : "info";
    const data = this.#withCost(run, {
      event,
      channel,
      outcome,
      durationMs,
      attempt,
      ageMs: sinceMs === undefined ? undefined : Math.max(0, startMs - sinceMs),
      replayed: isReplayed,
      afterMs,
    });
    run.log[level](`${kind}.completed`, data);
  }

  /** Without `log.cost`, the lines of a kind keep one shape. */
  #withCost({ cost }: ObservedRun, data: Record<string, unknown>): Record<string, unknown> {
    return this.#leastCost === undefined ? data : { ...data, ...(cost ?? this.#leastCost) };
  }

  #isWanted(durationMs: number, isFailed: boolean): boolean {
    if (this.#requests === true || isFailed) return true;
    return this.#requests !== "failed" && durationMs > this.#requests.slowerThanMs;
  }

  #since(startMs: number): number {
    return Math.max(0, (this.#clock?.now() ?? Date.now()) - startMs);
  }
}

/** Maximum length of a logged method. Clients can send any string. */
const longestMethod = 32;

/** Handlers that are polled every few seconds, regardless of traffic. */
export const polled = /^keelson\.(?:health|metrics)\./;

/**
 * Whether a request is a routine poll: a scrape, or a health check that answers ready or
 * unavailable.
 */
function isPoll({ handler = "" }: ObservedRun, status: number): boolean {
  return polled.test(handler) && (status < 300 || status === 503);
}
