import { vi } from "vitest";

/**
 * Advances the process's clock, so that the time of a running invocation has ended while its handler is here, regardless of
 * the speed of the machine. `vi.restoreAllMocks` restores the clock.
 */
export function timeIsOver(ms = 60_000): void {
  const { now } = Date;
  vi.spyOn(Date, "now").mockImplementation(() => now() + ms);
}
