import { afterEach, expect, test, vi } from "vitest";
import type { EffectRun, HeldEffect } from "./effect-run.ts";
import { sendEffects, waitWithin } from "./effect-run.ts";

const nowMs = 1_000_000;
const clock = { now: () => nowMs };

afterEach(() => {
  vi.restoreAllMocks();
});

test.each<[string, number | undefined, number]>([
  ["the longest wait without a deadline", undefined, 2_000],
  ["the longest wait if the deadline is far away", nowMs + 2_200, 2_000],
  ["until 200 ms before the deadline", nowMs + 950, 750],
  ["no time in the last 200 ms", nowMs + 150, 0],
  ["no time after the deadline", nowMs - 1, 0],
])("a committed write waits for its effects: %s", async (_, deadlineMs, waitedMs) => {
  const scope = { deadlineMs, runtime: { clock } } as Parameters<typeof waitWithin>[0];
  expect(waitWithin(scope, 2_000)).toBe(waitedMs);

  const timeout = vi
    .spyOn(globalThis, "setTimeout")
    .mockImplementation(((late: () => void) => void late()) as never); // safe: the timer is only cleared
  const never = new Promise<void>(() => undefined);
  const run = {
    runs: { outbox: { dispatch: () => never } },
    log: { info: () => undefined },
  } as unknown as EffectRun; // all that it reads
  const effect = { kind: "event", name: "deed.done", row: { eventId: "e" } } as HeldEffect;
  await sendEffects(scope, run, [effect]);
  expect(timeout).toHaveBeenCalledExactlyOnceWith(expect.any(Function), waitedMs);
});
