import { describe, expect, test } from "vitest";
import type { Runtime } from "../../app/runtime/runtime.ts";
import type { SweepOptions } from "../../parts/messages/outbox.ts";
import { sweepInTime } from "./sweep-in-time.ts";

const swept = { dispatched: 3, left: 1, setAside: 0 };

/** A runtime whose sweep ends as it is told. */
function runtimeOf(sweep: (options: SweepOptions) => Promise<unknown>) {
  const runs = { open: async () => ({ outbox: { sweep } }) };
  // Safe cast: nothing else is read.
  return { runs, clock: { now: () => 1_000 } } as unknown as Runtime;
}

const aborted = (signal: AbortSignal | undefined) =>
  new Promise<void>((resolve) => signal?.addEventListener("abort", () => resolve()));

describe("a sweep in a function", () => {
  test.each([
    ["5 s before its timeout", 5_080, 80],
    ["after half its time if it has less than 10 s", 200, 100],
    ["at once if its time is over", 0, 0],
  ])("is told to end %s", async (_when, remainingMs, afterMs) => {
    const startMs = performance.now();
    const runtime = runtimeOf(async ({ graceMs, signal }) => {
      await aborted(signal);
      return { ...swept, dispatched: graceMs };
    });
    const time = { deadlineMs: 1_000 + remainingMs, isOverIn: () => false };
    expect(await sweepInTime(runtime, time)).toEqual({ ...swept, dispatched: 10_000 });
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(afterMs - 1);
  });

  test("goes on to its end if the invocation has no limit", async () => {
    const runtime = runtimeOf(async (options) => {
      expect(options).toEqual({ graceMs: 10_000 });
      return swept;
    });
    const time = { deadlineMs: undefined, isOverIn: () => false };
    expect(await sweepInTime(runtime, time)).toEqual(swept);
  });
});
