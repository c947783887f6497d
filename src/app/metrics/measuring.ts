import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { RunObserver } from "../observe/run-observer.ts";

export interface Measuring {
  /** `undefined` if no exporter is configured. */
  readonly metrics: Metrics | undefined;
  /**
   * Creates the observer that measures runs, with the clock of their runtime. `undefined` if no
   * exporter is configured.
   */
  readonly observer: ((clock: Clock) => RunObserver) | undefined;
  /** Required package that is not installed. */
  readonly missing: string | undefined;
}
