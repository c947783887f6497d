import type { Clock } from "../process/clock.ts";
import { keyText } from "./claim-key.ts";
import type { ClaimStore } from "./claim-store.ts";
import { claimedRun, inProgress, keyReused, type OnceAnswer, type OnceWrite, type RunParts, type Work } from "./claimed-run.ts";
import { type ClaimSchedule, createClaims, processSchedule } from "./claims.ts";
import { createRecentAnswers } from "./recent-answers.ts";
import { createSharedRun, type SharedRun } from "./shared-run.ts";
import type { ClaimEngine } from "./write-claim-layer.ts";

/** What doing writes once takes. */
export interface OnceOptions {
  readonly store: ClaimStore;
  readonly clock: Clock;
  /** How long a repeat waits for its twin in flight, in milliseconds. */
  readonly waitMs: number;
  /** Aborts when the process drains. */
  readonly draining: AbortSignal;
  readonly schedule?: ClaimSchedule;
  readonly newOwner?: () => string;
}

/** Does writes once. */
export interface Once {
  /**
   * Does the work of a write, or gives the answer that it had before. Callers of one process who ask for the
   * same at the same time share a run; its signal aborts when the last of them is gone.
   *
   * @param caller - aborts when this caller is gone.
   * @throws as {@link claimedRun}, and the caller's reason where it went while waiting for another's run.
   */
  run(write: OnceWrite, caller: AbortSignal | undefined, work: Work): Promise<OnceAnswer>;
  /** Waits a moment before attempt `attempt` of a transaction. */
  pause(attempt: number): Promise<void>;
}

/** Creates the {@link Once} of one runtime. */
export function createOnce({ store, clock, waitMs, draining, schedule = processSchedule, newOwner }: OnceOptions): Once {
  const recent = createRecentAnswers(clock);
  const running = new Map<string, SharedRun>();
  let engine: Promise<ClaimEngine> | undefined;
  const parts: RunParts = {
    engine: () => {
      engine ??= import("./write-claim-layer.ts").then(({ createClaimEngine }) => createClaimEngine());
      return engine;
    },
    store,
    clock,
    waitMs,
    draining,
    claims: createClaims({ store, clock, schedule, ...(newOwner === undefined ? {} : { newOwner }) }),
    pause: (attempt) => schedule.wait(schedule.random() * 25 * 2 ** Math.min(attempt, 6), []),
    remember: ({ key, fingerprint }, answer, expiresAt) => recent.put(keyText(key), { answer, fingerprint, expiresAt }),
  };

  return {
    pause: parts.pause,
    run: async (write, caller, work) => {
      const key = keyText(write.key);
      const isOther = (fingerprint: string | undefined) => write.comparesFingerprint && fingerprint !== write.fingerprint;
      for (;;) {
        const known = recent.get(key);
        if (known !== undefined) {
          if (isOther(known.fingerprint)) throw keyReused();
          write.log.debug("once.replayed", { fromMemory: true });
          return { answer: known.answer, isReplay: true };
        }
        const twin = running.get(key);
        if (twin === undefined) break;
        if (isOther(twin.fingerprint)) throw keyReused();
        const joined = await twin.join(caller, { waitMs, draining });
        if (joined === "late") throw inProgress();
        if (joined === "again") continue;
        write.log.debug("once.shared");
        return { answer: joined, isReplay: true };
      }
      const shared = createSharedRun(write, caller, (signal) => claimedRun(parts, write, signal, work));
      running.set(key, shared);
      try {
        return await shared.outcome;
      } finally {
        running.delete(key);
      }
    },
  };
}
