import type { Logger } from "../../base/log/logger.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { MetricsAccessor } from "../handlers/pipeline-context.ts";

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
