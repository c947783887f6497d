import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { RunObserver } from "../observe/run-observer.ts";

export interface Measuring {
  readonly metrics: Metrics | undefined;
  /**
   * Creates an observer that measures runs with the clock of their runtime. `undefined`, like
   * `metrics`, if there is no exporter.
   */
  readonly observer: ((clock: Clock) => RunObserver) | undefined;
  readonly missing: string | undefined;
}
