import { vi } from "vitest";

/**
 * Advances the clock that deadlines use, so that the time of a running invocation has ended while
 * its handler is here, regardless of the speed of the machine. `vi.restoreAllMocks` restores it.
 */
export function timeIsOver(ms = 60_000): void {
  const now = performance.now.bind(performance);
  vi.spyOn(performance, "now").mockImplementation(() => now() + ms);
}
