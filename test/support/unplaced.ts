import type { BootProblem } from "../../src/base/errors/boot.ts";

/** The problems without their places, for tests whose places are of no interest. */
export function unplaced(problems: readonly BootProblem[] = []): Omit<BootProblem, "at">[] {
  return problems.map(({ at: _, ...problem }) => problem);
}
