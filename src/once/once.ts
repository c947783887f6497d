import type { Clock } from "../process/clock.ts";
import { keyText } from "./claim-key.ts";
import type { ClaimStore } from "./claim-store.ts";
import { type ClaimSchedule, type Claims, createClaims, processSchedule } from "./claims.ts";
import { createRecentAnswers, createSharedRun, type SharedRun } from "./duplicates.ts";
import type { OnceClaim, Run, RunOutcome } from "./once-run.ts";
import { inProgress, keyReused, type OnceParts, runOnce } from "./run-once.ts";

/** What doing things once takes. */
export interface OnceOptions {
  readonly store: ClaimStore;
  readonly clock: Clock;
  /** How long a write waits for its duplicate in flight, in milliseconds. */
  readonly waitMs: number;
  /** Aborts when the process drains. */
  readonly draining: AbortSignal;
  readonly schedule?: ClaimSchedule;
  readonly newOwner?: () => string;
}

/** Does things once. */
export interface Once {
  /**
   * Does the work of a run, or says what became of it before. Callers of one process who ask for the same write at the same
   * time share a run; its signal aborts when the last of them is gone.
   *
   * @throws as {@link runOnce}; FrameworkError `request_in_progress` if a write's duplicate runs longer than
   * `waitMs`, and the caller's reason if it goes while it waits for a shared run.
   */
  run<Result>(run: Run<Result>): Promise<RunOutcome<Result>>;
  readonly claims: Claims;
  /** Waits a moment before attempt `attempt` of a transaction. */
  pause(attempt: number): Promise<void>;
}

/** Creates the {@link Once} of one runtime. */
export function createOnce({ store, clock, waitMs, draining, schedule = processSchedule, newOwner }: OnceOptions): Once {
  const recent = createRecentAnswers(clock);
  const running = new Map<string, SharedRun>();
  const parts: OnceParts = {
    store,
    clock,
    waitMs,
    draining,
    claims: createClaims({ store, clock, schedule, ...(newOwner === undefined ? {} : { newOwner }) }),
    pause: (attempt) => schedule.wait(schedule.random() * 25 * 2 ** Math.min(attempt, 6), []),
    remember: ({ claim, text }, answer, expiresAt) =>
      // Safe, twice: what is remembered is a write that is claimed, and `run` has named it.
      recent.put(text as string, { answer, fingerprint: (claim as OnceClaim).fingerprint, expiresAt }),
  };

  return {
    claims: parts.claims,
    pause: parts.pause,
    run: async (run) => {
      const { claim, log } = run;
      if (claim?.kind !== "write") return runOnce(parts, run);
      const key = keyText(claim.key);
      const isOther = (fingerprint: string | undefined) =>
        claim.comparesFingerprint === true && fingerprint !== claim.fingerprint;
      for (;;) {
        const known = recent.get(key);
        if (known !== undefined) {
          if (isOther(known.fingerprint)) throw keyReused();
          log.debug("once.replayed", { fromMemory: true });
          return { kind: "replayed", answer: known.answer };
        }
        const duplicate = running.get(key);
        // Nothing is awaited from here until the run stands among those that go on.
        if (duplicate === undefined) break;
        if (isOther(duplicate.fingerprint)) throw keyReused();
        const joined = await duplicate.join(run.signal, { waitMs, draining });
        if (joined === "running") throw inProgress();
        if (joined === "retry") continue;
        log.debug("once.shared");
        return { kind: "replayed", answer: joined };
      }
      const shared = createSharedRun(claim, run.signal, (signal) => runOnce(parts, { ...run, signal, text: key }));
      running.set(key, shared);
      try {
        return await shared.outcome;
      } finally {
        running.delete(key);
      }
    },
  };
}
