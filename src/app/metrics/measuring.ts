import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { RunObserver } from "../observe/run-observer.ts";

/** What a host measures with. */
export interface Measuring {
  /** `undefined` where nobody listens. */
  readonly metrics: Metrics | undefined;
  /** Makes what measures runs, by the clock of their runtime; there where somebody listens. */
  readonly observer: ((clock: Clock) => RunObserver) | undefined;
  /** The package that is asked for, and not installed. */
  readonly missing: string | undefined;
}
