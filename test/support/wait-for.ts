import { vi } from "vitest";

/**
 * Waits until a condition no longer throws, for as long as `expect.poll` does. `vi.waitFor` gives up after a second, which a
 * busy machine may need.
 */
export function waitFor<T>(condition: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(condition, { timeout: 30_000, interval: 10 });
}
