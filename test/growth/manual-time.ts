import type { ClaimSchedule } from "../../src/parts/once/held-claim.ts";

/** Returns a clock that a test moves, and the pauses of processes that follow it. */
export function createManualTime() {
  let nowMs = Date.UTC(2026, 10, 29);
  let pauses: { readonly untilMs: number; readonly end: () => void }[] = [];
  const schedule: ClaimSchedule = {
    wait: (ms) =>
      new Promise((end) => {
        pauses.push({ untilMs: nowMs + ms, end });
      }),
    repeat: () => () => undefined,
    random: () => 0.5,
    now: () => nowMs,
  };
  const advance = (ms: number): void => {
    nowMs += ms;
    const over = pauses.filter(({ untilMs }) => untilMs <= nowMs);
    pauses = pauses.filter(({ untilMs }) => untilMs > nowMs);
    for (const { end } of over) end();
  };
  return {
    clock: { now: () => nowMs },
    schedule,
    advance,
    /** Moves to the end of the next pause whenever all that run are in one, until none runs. */
    pass: async (running: () => number): Promise<void> => {
      while (running() > 0) {
        if (pauses.length === running())
          advance(Math.min(...pauses.map(({ untilMs }) => untilMs)) - nowMs);
        await new Promise((done) => setImmediate(done));
      }
    },
  };
}
