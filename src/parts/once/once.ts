import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Clock } from "../../base/process/clock.ts";
import { defined } from "../../base/types/defined.ts";
import { replayOf, type WriteAnswer } from "./answer.ts";
import { keyText, skewMs } from "./claim.ts";
import { countReplayed } from "./claim-counts.ts";
import { inProgress, keyReused } from "./claim-errors.ts";
import type { Run, RunOutcome } from "./claimed-run.ts";
import { type Claims, createClaims, type OnceClaim, type OnceParts } from "./claims.ts";
import { type ClaimSchedule, processSchedule } from "./held-claim.ts";
import { performClaimed } from "./perform-claimed.ts";

export interface OnceOptions extends Pick<OnceParts, "store" | "clock" | "waitMs" | "draining"> {
  readonly schedule?: ClaimSchedule;
  readonly newOwner?: () => string;
  readonly metrics?: Metrics | undefined;
}

export interface Once {
  /**
   * Does the work of a run, or returns the outcome of an earlier run. Concurrent callers of a write
   * in one process share a run, whose signal aborts when the last caller disconnects.
   *
   * @throws the errors of {@link performClaimed}; FrameworkError `request_in_progress` if a write's
   * duplicate runs longer than `waitMs`; the reason of a caller who disconnects while waiting.
   */
  run<Result>(run: Run<Result>): Promise<RunOutcome<Result>>;
  readonly claims: Claims;
  pause(attempt: number): Promise<void>;
}

export function createOnce(options: OnceOptions): Once {
  const { store, clock, waitMs, draining, schedule = processSchedule, newOwner, metrics } = options;
  const recent = createRecentAnswers(clock);
  const running = new Map<string, SharedRun>();
  // One listener, because removing one of many from a signal passes over all others.
  const waiting = new Set<() => void>();
  draining.addEventListener("abort", () => {
    for (const stop of waiting) stop();
  });
  const parts: OnceParts = {
    store,
    clock,
    waitMs,
    draining,
    metrics,
    claims: createClaims({ store, clock, schedule, ...defined({ newOwner }) }),
    pause: (attempt) => schedule.wait(schedule.random() * 25 * 2 ** Math.min(attempt, 6), []),
    remember: ({ key, fingerprint }, answer, expiresAt) =>
      recent.put(keyText(key), { answer, fingerprint, expiresAt }),
  };

  return {
    claims: parts.claims,
    pause: parts.pause,
    run: async (run) => {
      const { claim, log } = run;
      if (claim?.kind !== "write") return performClaimed(parts, run);
      const key = keyText(claim.key);
      const isOther = (fingerprint: string | undefined) =>
        claim.comparesFingerprint === true && fingerprint !== claim.fingerprint;
      for (;;) {
        const known = recent.get(key);
        if (known !== undefined) {
          if (isOther(known.fingerprint)) throw keyReused();
          log.debug("once.replayed", { fromMemory: true });
          if (metrics !== undefined) countReplayed(metrics, "replayed");
          return { kind: "replayed", answer: known.answer };
        }
        const duplicate = running.get(key);
        // No `await` may come between here and `running.set`, or a duplicate could start as well.
        if (duplicate === undefined || duplicate.leftMs(clock.now()) <= 0) break;
        if (isOther(duplicate.fingerprint)) throw keyReused();
        const joined = await duplicate.join(run.signal, { waitMs, draining, waiting, clock });
        if (metrics !== undefined && joined !== "retry")
          countReplayed(metrics, joined === "running" ? "conflicted" : "waited");
        if (joined === "running") throw inProgress();
        if (joined === "retry") continue;
        log.debug("once.shared");
        if (metrics !== undefined) countReplayed(metrics, "replayed");
        return { kind: "replayed", answer: joined };
      }
      const shared = new SharedRun(claim);
      running.set(key, shared);
      const leave = shared.enter(run.signal);
      try {
        const outcome = performClaimed(parts, { ...run, signal: shared.signal });
        shared.outcome = outcome;
        return await outcome;
      } finally {
        shared.end();
        leave();
        if (running.get(key) === shared) running.delete(key);
      }
    },
  };
}

/** Its signal aborts when the last caller disconnects. */
class SharedRun {
  readonly fingerprint: string | undefined;
  readonly #replayedHeaders: readonly string[];
  readonly #deadlineMs: number | undefined;
  readonly #controller = new AbortController();
  outcome: Promise<unknown> | undefined = undefined;
  #waiting = 0;
  #isOver = false;

  constructor({ fingerprint, replayedHeaders, deadlineMs }: OnceClaim) {
    this.#deadlineMs = deadlineMs;
    this.fingerprint = fingerprint;
    this.#replayedHeaders = replayedHeaders;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  end(): void {
    this.#isOver = true;
  }

  /**
   * Time until another process may take over the claim if all callers have disconnected, in
   * milliseconds. A duplicate then does not wait any longer, because the handler may never end.
   */
  leftMs(nowMs: number): number {
    const isLimited = this.#deadlineMs !== undefined && this.signal.aborted;
    return isLimited ? this.#deadlineMs + skewMs + 1 - nowMs : Number.POSITIVE_INFINITY;
  }

  /** Adds a caller, whom the returned function removes. */
  enter(caller: AbortSignal | undefined): () => void {
    this.#waiting += 1;
    let isIn = true;
    const leave = () => {
      if (!isIn) return;
      isIn = false;
      this.#waiting -= 1;
      caller?.removeEventListener("abort", leave);
      if (this.#waiting === 0 && !this.#isOver) this.#controller.abort(caller?.reason);
    };
    if (caller?.aborted) leave();
    else caller?.addEventListener("abort", leave);
    return leave;
  }

  /**
   * Waits for the run on behalf of a duplicate, which gets a separate response.
   *
   * @returns the answer; `retry` if the run has no answer to share; `running` if the run took too long
   * or the process drains.
   * @throws the error of the run, or the reason of a caller who has disconnected.
   */
  async join(
    caller: AbortSignal | undefined,
    {
      waitMs,
      draining,
      waiting,
      clock,
    }: {
      readonly waitMs: number;
      readonly draining: AbortSignal;
      /** Called when `draining` aborts. */
      readonly waiting: Set<() => void>;
      readonly clock: Clock;
    },
  ): Promise<WriteAnswer | "retry" | "running"> {
    caller?.throwIfAborted();
    // Safe cast: the outcome is set before callers join.
    const outcome = this.outcome as Promise<RunOutcome<unknown>>;
    // If all callers have disconnected, the duplicate waits only for the end of the claim.
    const isAbandoned = this.signal.aborted;
    const leave = this.enter(caller);
    const { promise: givenUp, resolve } = Promise.withResolvers<"running" | "retry">();
    const stop = () => resolve("running");
    const leftMs = this.leftMs(clock.now());
    // A longer timer would fire immediately.
    const timerMs = Math.min(waitMs, leftMs, 2 ** 31 - 1);
    const timer = setTimeout(resolve, timerMs, leftMs < waitMs ? "retry" : "running");
    caller?.addEventListener("abort", stop);
    waiting.add(stop);
    try {
      if (draining.aborted) return "running";
      const retry = () => "retry" as const;
      const settled = isAbandoned ? outcome.then(retry, retry) : outcome;
      const ended = await Promise.race([settled, givenUp]);
      if (ended === "running") {
        caller?.throwIfAborted();
        return "running";
      }
      if (ended === "retry") return "retry";
      // Safe cast: a write that did not fail has an answer.
      const { answer } = ended as { readonly answer: WriteAnswer };
      return answer.cookies.length > 0 ? "retry" : replayOf(answer, this.#replayedHeaders);
    } finally {
      clearTimeout(timer);
      caller?.removeEventListener("abort", stop);
      waiting.delete(stop);
      leave();
    }
  }
}

export interface RecentAnswer {
  readonly answer: WriteAnswer;
  readonly fingerprint: string | undefined;
  /** Expiry of the claim, in epoch seconds. */
  readonly expiresAt: number;
}

/** Limits of one answer and of all, in bytes, and number of answers. */
const [largestBytes, maxBytes, maxEntries] = [65_536, 8 * 1_048_576, 2_000];

/** Caches what this process stored recently, for replays without a store call. */
export function createRecentAnswers(clock: Clock) {
  const entries = new Map<string, RecentAnswer & { readonly bytes: number }>();
  let total = 0;
  const forget = (key: string) => {
    const known = entries.get(key);
    if (known === undefined) return;
    total -= known.bytes;
    entries.delete(key);
  };
  return {
    get: (key: string): RecentAnswer | undefined => {
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      // An answer expires `skewMs` early, because another process's clock may be ahead.
      if (entry.expiresAt * 1000 - skewMs > clock.now()) return entry;
      forget(key);
      return undefined;
    },
    put: (key: string, { answer, fingerprint, expiresAt }: RecentAnswer): void => {
      const bytes = key.length + (answer.body?.length ?? 0) + 256;
      forget(key);
      if (bytes > largestBytes) return;
      entries.set(key, { answer, fingerprint, expiresAt, bytes });
      total += bytes;
      if (total <= maxBytes && entries.size <= maxEntries) return;
      // Evicts a tenth together, because iterating a `Map` passes over every entry deleted before.
      for (const oldest of entries.keys()) {
        if (total <= maxBytes * 0.9 && entries.size <= maxEntries * 0.9) break;
        forget(oldest);
      }
    },
  };
}
