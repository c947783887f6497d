import type { Metrics as Powertools } from "@aws-lambda-powertools/metrics";
import {
  createMetrics,
  type MetricSink,
  type SeriesLabels,
} from "../../base/metrics/bounded-metrics.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Variables } from "../../base/process/environment.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import { declaredLabels } from "./declared-labels.ts";
import type { Measuring } from "./measuring.ts";
import { createRunMetrics } from "./run-metrics.ts";

/** The package that writes them. */
const wanted = "@aws-lambda-powertools/metrics";

/** Opens the metrics of a function: lines in CloudWatch's Embedded Metric Format, written when an invocation ends. */
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
  return {
    metrics,
    observer: (clock) => createRunMetrics({ metrics, clock, basePath }),
    missing: undefined,
  };
}

/** Loads Powertools; `undefined` where it is not installed. */
async function loadMetrics(): Promise<typeof import("@aws-lambda-powertools/metrics") | undefined> {
  // In a `try`, bundlers leave out what is not installed.
  try {
    return await import("@aws-lambda-powertools/metrics");
  } catch {
    return undefined;
  }
}

/** Collects values until they are written. */
export interface EmfSink extends MetricSink {
  flush(): void;
}

/** A line has dimensions and properties of its own, so that there is a Metrics for each set of labels. */
interface Line {
  readonly metrics: Powertools;
  readonly properties: SeriesLabels;
}

/** How many sets of labels are kept from one invocation to the next. */
const maxLines = 200;

/** Writes values with Powertools: labels that cost nothing are properties of the line, the others dimensions. */
export function emfSink(
  { Metrics }: Pick<typeof import("@aws-lambda-powertools/metrics"), "Metrics">,
  place: { readonly namespace: string; readonly serviceName: string },
): EmfSink {
  const lines = new Map<string, Line>();
  /** By the labels of a series, which are one object. */
  let known = new WeakMap<SeriesLabels, Line>();
  /** What has values. */
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
      // With the first value of a line: Powertools writes one by itself where a metric has 100 values, and forgets its properties.
      if (!metrics.hasStoredMetrics())
        for (const [name, text] of Object.entries(properties)) metrics.addMetadata(name, text);
      metrics.addMetric(name, unitOf(unit), value);
    },
    flush: () => {
      for (const { metrics } of filled) writeLine(metrics);
      filled.clear();
      if (lines.size <= maxLines) return;
      lines.clear();
      known = new WeakMap();
    },
  };
}

/** An invocation does not fail because of what was measured. */
function writeLine(metrics: Powertools): void {
  try {
    if (metrics.hasStoredMetrics()) metrics.publishStoredMetrics();
  } catch {
    // It is cleared all the same.
  }
}

const units = { s: "Seconds", ms: "Milliseconds", By: "Bytes", "%": "Percent" } as const;

function unitOf(unit: string) {
  return Object.hasOwn(units, unit) ? units[unit as keyof typeof units] : "Count"; // safe: it is one of them
}
