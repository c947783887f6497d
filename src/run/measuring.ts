import type { Metrics } from "../metrics/metrics.ts";
import type { RunObserver } from "./run-observer.ts";

/** What a host measures with. */
export interface Measuring {
  /** `undefined` where nobody listens. */
  readonly metrics: Metrics | undefined;
  /** Measures runs; there where somebody listens. */
  readonly observer: RunObserver | undefined;
  /** The package that is asked for, and not installed. */
  readonly missing: string | undefined;
}
