import { vi } from "vitest";

/**
 * Moves the process's clock on, so that the time of a running invocation is over: with its handler here, however long a
 * busy machine took to get here. `vi.restoreAllMocks` puts the clock back.
 */
export function timeIsOver(ms = 60_000): void {
  const { now } = Date;
  vi.spyOn(Date, "now").mockImplementation(() => now() + ms);
}
