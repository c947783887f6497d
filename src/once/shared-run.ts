import { type Answer, replayOf } from "./answer.ts";
import type { Ended, OnceClaim } from "./run-once.ts";

/** A run that callers of one process wait for together. */
export interface SharedRun<Result = unknown> {
  readonly fingerprint: string | undefined;
  /** What the caller who began it gets. */
  readonly outcome: Promise<Ended<Result>>;
  /**
   * Waits for the run as a duplicate. Each duplicate gets a response of its own.
   *
   * @returns the answer; `again` where there is none to be shared, so that the duplicate has to try for itself;
   * `late` where it took too long, or the process drains.
   * @throws what the run has thrown, and the caller's reason where the caller is gone.
   */
  join(
    caller: AbortSignal | undefined,
    limits: { readonly waitMs: number; readonly draining: AbortSignal },
  ): Promise<Answer | "again" | "late">;
}

/** Begins a run whose signal aborts when the last who waits for it is gone. */
export function createSharedRun<Result>(
  { fingerprint, replayedHeaders }: Pick<OnceClaim, "fingerprint" | "replayedHeaders">,
  leader: AbortSignal | undefined,
  begin: (signal: AbortSignal) => Promise<Ended<Result>>,
): SharedRun<Result> {
  const controller = new AbortController();
  let waiting = 0;
  let isOver = false;
  /** Counts a caller in; the returned function counts it out. */
  const enter = (caller: AbortSignal | undefined) => {
    waiting += 1;
    let isIn = true;
    const leave = () => {
      if (!isIn) return;
      isIn = false;
      waiting -= 1;
      caller?.removeEventListener("abort", leave);
      if (waiting === 0 && !isOver) controller.abort(caller?.reason);
    };
    if (caller?.aborted) leave();
    else caller?.addEventListener("abort", leave);
    return leave;
  };
  const leave = enter(leader);
  const outcome = begin(controller.signal).finally(() => {
    isOver = true;
    leave();
  });

  return {
    fingerprint,
    outcome,
    join: async (caller, { waitMs, draining }) => {
      caller?.throwIfAborted();
      // Its callers are gone: what it comes to is nobody's answer, but the claim is its own until then.
      const isAbandoned = controller.signal.aborted;
      const leaveDuplicate = enter(caller);
      let end: (value: "late") => void = () => {};
      const late = new Promise<"late">((resolve) => {
        end = resolve;
      });
      const stop = () => end("late");
      const timer = setTimeout(stop, waitMs);
      caller?.addEventListener("abort", stop);
      draining.addEventListener("abort", stop);
      try {
        if (draining.aborted) return "late";
        const settled = isAbandoned ? outcome.then(abandoned, abandoned) : outcome;
        const ended = await Promise.race([settled, late]);
        if (ended === "late") {
          caller?.throwIfAborted();
          return "late";
        }
        if (ended === "again") return "again";
        const { answer } = ended as { readonly answer: Answer }; // safe: a write that did not fail has one
        return answer.cookies.length > 0 ? "again" : replayOf(answer, replayedHeaders);
      } finally {
        clearTimeout(timer);
        caller?.removeEventListener("abort", stop);
        draining.removeEventListener("abort", stop);
        leaveDuplicate();
      }
    },
  };
}

function abandoned(): "again" {
  return "again";
}
