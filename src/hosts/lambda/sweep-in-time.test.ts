import { afterEach, describe, expect, test, vi } from "vitest";
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

afterEach(() => vi.restoreAllMocks());

describe("a sweep in a function", () => {
  test.each([
    ["10 s before its timeout", 60_000, 50_000],
    ["after half its time if it has less than 20 s", 15_001, 7_501],
    ["at once if its time is over", -5, 0],
  ])("is told to end %s", async (_when, remainingMs, afterMs) => {
    const told = new AbortController().signal;
    const timeout = vi.spyOn(AbortSignal, "timeout").mockReturnValue(told);
    const runtime = runtimeOf(async (options) => {
      expect(options).toEqual({ graceMs: 10_000, signal: told });
      return swept;
    });
    const time = { deadlineMs: 1_000 + remainingMs, isOverIn: () => false };
    expect(await sweepInTime(runtime, time)).toEqual(swept);
    expect(timeout.mock.calls).toEqual([[afterMs]]);
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
