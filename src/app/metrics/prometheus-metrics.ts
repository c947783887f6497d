import type { MetricSink, SeriesLabels } from "../../base/metrics/bounded-metrics.ts";
import type { MetricDeclaration } from "../../base/metrics/metric-list.ts";
import type { MetricsPage } from "../../base/metrics/metrics.ts";
import { prometheusLabel, prometheusName } from "../../base/metrics/prometheus-name.ts";

/** Keeps values for a scrape. */
export interface PrometheusSink extends MetricSink {
  page(): Promise<MetricsPage>;
}

/** Loads prom-client; `undefined` where it is not installed. */
export async function loadPrometheus(): Promise<typeof import("prom-client") | undefined> {
  // In a `try`, bundlers leave out what is not installed.
  try {
    return await import("prom-client");
  } catch {
    return undefined;
  }
}

/** Keeps metrics in a registry of their own: an application's, and those of another server, are none of them. */
export function prometheusSink(
  { Registry, Counter, Gauge, Histogram }: typeof import("prom-client"),
  metrics: Iterable<MetricDeclaration>,
): PrometheusSink {
  const registry = new Registry();
  const names = new Set<string>();
  const takerOf = (metric: MetricDeclaration) => {
    let name = prometheusName(metric);
    while (names.has(name)) name += "_2"; // `a.b-c` and `a-b.c` are one there
    names.add(name);
    const labelNames = Object.keys(metric.labels).map(prometheusLabel);
    const options = { name, help: metric.text || name, labelNames, registers: [registry] };
    switch (metric.kind) {
      case "counter": {
        const counter = new Counter(options);
        // From 0, or the first of something would be no increase.
        for (const labels of seriesOf(metric)) counter.inc(labels, 0);
        return (value: number, labels: Record<string, string>) => counter.inc(labels, value);
      }
      case "gauge": {
        const gauge = new Gauge(options);
        return (value: number, labels: Record<string, string>) => gauge.set(labels, value);
      }
      case "histogram": {
        const histogram = new Histogram({
          ...options,
          ...(metric.buckets === undefined ? {} : { buckets: [...metric.buckets] }),
        });
        return (value: number, labels: Record<string, string>) => histogram.observe(labels, value);
      }
    }
  };
  const takers = new Map([...metrics].map((metric) => [metric.name, takerOf(metric)] as const));
  const renamed = new WeakMap<SeriesLabels, Record<string, string>>();
  const labelsOf = (labels: SeriesLabels) => {
    let found = renamed.get(labels);
    if (found === undefined) {
      found = Object.fromEntries(
        Object.entries(labels).map(([name, value]) => [prometheusLabel(name), value]),
      );
      renamed.set(labels, found);
    }
    return found;
  };
  return {
    record: ({ name }, value, labels) => takers.get(name)?.(value, labelsOf(labels)),
    page: async () => ({ text: await registry.metrics(), contentType: registry.contentType }),
  };
}

/** Of how many series a counter shows that there was nothing. */
const maxZeros = 50;

/** The series of a metric whose labels have values that are known, with those labels alone; none where there are too many. */
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
