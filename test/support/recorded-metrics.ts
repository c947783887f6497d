import type { MetricLabels, Metrics } from "../../src/base/metrics/metrics.ts";

/** Metrics that a test reads: `keelson.claims write taken` for each value, in their order. */
export function recordedMetrics() {
  const values: [series: string, value: number][] = [];
  const record: Metrics["record"] = (name, value, ...[labels = {}]: readonly MetricLabels[]) => {
    values.push([
      [name, ...Object.values(labels).filter((text) => text !== undefined)].join(" "),
      value,
    ]);
  };
  /** The sum of each series. */
  const sums = () => {
    const found: Record<string, number> = {};
    for (const [series, value] of values) found[series] = (found[series] ?? 0) + value;
    return found;
  };
  const metrics: Metrics = { record, add: () => undefined };
  return { metrics, values, sums };
}
