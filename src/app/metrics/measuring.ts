import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { RunObserver } from "../observe/run-observer.ts";

export interface Measuring {
  readonly metrics: Metrics | undefined;
  /** Measures runs with the clock of their runtime. Absent, like `metrics`, without an exporter. */
  readonly observer: ((clock: Clock) => RunObserver) | undefined;
  /** Required package that is not installed. */
  readonly missing: string | undefined;
}
