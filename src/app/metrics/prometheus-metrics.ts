import { bySeries, type MetricSink } from "../../base/metrics/bounded-metrics.ts";
import {
  type MetricDeclaration,
  prometheusLabel,
  prometheusName,
} from "../../base/metrics/metric-list.ts";
import type { MetricsPage } from "../../base/metrics/metrics.ts";

export async function loadPrometheus(): Promise<typeof import("prom-client") | undefined> {
  // Because of the `try`, bundlers omit the package if it is not installed.
  try {
    return await import("prom-client");
  } catch {
    return undefined;
  }
}

/** The registry is separate from the application's and other servers'. */
export function prometheusSink(
  { Registry, Counter, Gauge, Histogram }: typeof import("prom-client"),
  metrics: Iterable<MetricDeclaration>,
): MetricSink & { page(): Promise<MetricsPage> } {
  const registry = new Registry();
  const names = new Set<string>();
  type Take = (value: number, labels: Record<string, string>) => void;
  const takerOf = (metric: MetricDeclaration): Take => {
    let name = prometheusName(metric);
    while (names.has(name)) name += "_2"; // `a.b-c` and `a-b.c` get the same Prometheus name
    names.add(name);
    const labelNames = Object.keys(metric.labels).map(prometheusLabel);
    const options = { name, help: metric.text || name, labelNames, registers: [registry] };
    switch (metric.kind) {
      case "counter": {
        const counter = new Counter(options);
        // Starts each series at 0, because otherwise its first count would not show as an increase.
        for (const labels of seriesOf(metric)) counter.inc(labels, 0);
        return (value, labels) => counter.inc(labels, value);
      }
      case "gauge": {
        const gauge = new Gauge(options);
        return (value, labels) => gauge.set(labels, value);
      }
      case "histogram": {
        const buckets = metric.buckets && { buckets: [...metric.buckets] };
        const histogram = new Histogram({ ...options, ...buckets });
        return (value, labels) => histogram.observe(labels, value);
      }
    }
  };
  const takers = new Map([...metrics].map((metric) => [metric.name, takerOf(metric)] as const));
  const labelsOf = bySeries((labels) =>
    Object.fromEntries(
      Object.entries(labels).map(([name, value]) => [prometheusLabel(name), value]),
    ),
  );
  return {
    record: ({ name }, value, labels) => takers.get(name)?.(value, labelsOf(labels)),
    page: async () => ({ text: await registry.metrics(), contentType: registry.contentType }),
  };
}

/** Most series that a counter starts at 0. */
const maxZeros = 50;

/** Every combination of labels; none if a label has open values, or for more than `maxZeros`. */
function seriesOf({ labels }: MetricDeclaration): readonly Record<string, string>[] {
  let series: Record<string, string>[] = [{}];
  for (const [name, values] of Object.entries(labels)) {
    if (typeof values === "string") return [];
    series = series.flatMap((one) =>
      values.map((value) => ({ ...one, [prometheusLabel(name)]: value })),
    );
    if (series.length > maxZeros) return [];
  }
  return series;
}
