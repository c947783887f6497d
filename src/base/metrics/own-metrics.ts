import type { Logger } from "../log/logger.ts";
import type { Metrics } from "./metrics.ts";

/** Records values of the application's metrics. */
export interface MetricsAccessor {
  /**
   * Adds to a counter declared with `r.metric`, or records a value in a histogram. The value is
   * exported along with keelson's metrics, or discarded if no exporter is configured. Never throws:
   * invalid calls are logged once as `metrics.ignored`.
   *
   * @param name - the full name: `<feature>.<entity>.<name>`.
   * @param value - a number from 0 to 2^360.
   * @param labels - an undeclared value becomes `other`, and an undeclared label is dropped.
   */
  readonly add: (
    name: string,
    value: number,
    labels?: Readonly<Record<string, string | undefined>>,
  ) => void;
}

const nobodyListens: MetricsAccessor = Object.freeze({ add: () => undefined });

/** Creates the `ctx.metrics` of a run. */
export function ownMetrics(metrics: Metrics | undefined, log: Logger): MetricsAccessor {
  if (metrics === undefined) return nobodyListens;
  return {
    add: (name, value, labels) => {
      const problem = metrics.add(name, value, labels);
      if (problem === undefined) return;
      const metric = typeof name === "string" ? name.slice(0, 200) : `(${typeof name})`; // plain JavaScript may pass any value
      log.warn("metrics.ignored", { metric, reason: problem });
    },
  };
}
