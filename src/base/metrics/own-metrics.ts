import type { Logger } from "../log/logger.ts";
import type { Metrics } from "./metrics.ts";

/** Metrics of the application. */
export interface MetricsAccessor {
  /**
   * Adds to a counter declared with `r.metric`, or samples a histogram. The metric is exported with
   * keelson's metrics. Never throws: a wrong call logs `metrics.ignored`, once per name.
   *
   * @param name - the full name, `<feature>.<entity>.<name>`.
   * @param value - from 0 to 2^360.
   * @param labels - an undeclared value becomes `other`; an undeclared label is dropped.
   */
  readonly add: (
    name: string,
    value: number,
    labels?: Readonly<Record<string, string | undefined>>,
  ) => void;
}

const nobodyListens: MetricsAccessor = Object.freeze({ add: () => undefined });

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
