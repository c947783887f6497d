import type { Metrics as Powertools } from "@aws-lambda-powertools/metrics";
import {
  createMetrics,
  type MetricSink,
  type SeriesLabels,
} from "../../base/metrics/bounded-metrics.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Variables } from "../../base/process/environment.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import { createRunMetrics, declaredLabels, type Measuring } from "./run-metrics.ts";

const wanted = "@aws-lambda-powertools/metrics";

/** Opens metrics that are written in CloudWatch's Embedded Metric Format after each invocation. */
export async function openLambdaMetrics(
  server: DeclaredServer,
  variables: Variables,
  load = loadMetrics,
): Promise<Measuring> {
  const powertools = await load();
  if (powertools === undefined) return { metrics: undefined, observer: undefined, missing: wanted };
  const { basePath, dynamodb, metrics: options } = server.options;
  const prefix = dynamodb?.prefix ?? "keelson";
  const sink = emfSink(powertools, {
    namespace: variables["POWERTOOLS_METRICS_NAMESPACE"] || prefix,
    serviceName: options?.service ?? prefix,
  });
  const made = createMetrics({
    own: server.registry.metrics.values(),
    declared: declaredLabels(server),
    sinks: [sink],
  });
  const metrics: Metrics = { ...made, flush: sink.flush };
  const observer: Measuring["observer"] = (clock) => createRunMetrics({ metrics, clock, basePath });
  return { metrics, observer, missing: undefined };
}

async function loadMetrics(): Promise<typeof import("@aws-lambda-powertools/metrics") | undefined> {
  // Because of the `try`, bundlers omit the package if it is not installed.
  try {
    return await import("@aws-lambda-powertools/metrics");
  } catch {
    return undefined;
  }
}

/** An EMF line. Each set of labels has its own. */
interface Line {
  readonly metrics: Powertools;
  readonly properties: SeriesLabels;
}

/** Lines kept between invocations. */
const maxLines = 200;

/** Labels in `dimensions` become dimensions, which CloudWatch bills; others properties, free. */
export function emfSink(
  { Metrics }: Pick<typeof import("@aws-lambda-powertools/metrics"), "Metrics">,
  place: { readonly namespace: string; readonly serviceName: string },
): MetricSink & { flush(): void } {
  const lines = new Map<string, Line>();
  /** A series always passes the same labels object. */
  let known = new WeakMap<SeriesLabels, Line>();
  const filled = new Set<Line>();
  const lineOf = (dimensions: readonly string[], labels: SeriesLabels): Line => {
    const entries = Object.entries(labels);
    const of = (isDimension: boolean) =>
      Object.fromEntries(entries.filter(([label]) => dimensions.includes(label) === isDimension));
    const [defaultDimensions, properties] = [of(true), of(false)];
    const key = JSON.stringify([defaultDimensions, properties]);
    const line = lines.get(key) ?? {
      metrics: new Metrics({ ...place, defaultDimensions }),
      properties,
    };
    lines.set(key, line);
    known.set(labels, line);
    return line;
  };
  return {
    record: ({ name, unit, dimensions = [] }, value, labels) => {
      const line = known.get(labels) ?? lineOf(dimensions, labels);
      filled.add(line);
      const { metrics, properties } = line;
      // Powertools publishes a line at 100 values of a metric, and then drops its properties.
      if (!metrics.hasStoredMetrics())
        for (const [name, text] of Object.entries(properties)) metrics.addMetadata(name, text);
      metrics.addMetric(name, unitOf(unit), value);
    },
    flush: () => {
      for (const { metrics } of filled) {
        try {
          if (metrics.hasStoredMetrics()) metrics.publishStoredMetrics();
        } catch {} // Powertools clears the line anyway
      }
      filled.clear();
      if (lines.size <= maxLines) return;
      lines.clear();
      known = new WeakMap();
    },
  };
}

const units = { s: "Seconds", ms: "Milliseconds", By: "Bytes", "%": "Percent" } as const;

function unitOf(unit: string) {
  return Object.hasOwn(units, unit) ? units[unit as keyof typeof units] : "Count"; // safe: `hasOwn` found the unit
}
