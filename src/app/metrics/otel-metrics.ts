import {
  bySeries,
  type MetricSink,
  type SeriesLabels,
} from "../../base/metrics/bounded-metrics.ts";
import type { MetricDeclaration } from "../../base/metrics/metric-list.ts";
import { openTelemetry } from "../observe/run-observer.ts";

/** The parts of OpenTelemetry's meter that keelson uses, without its package. */
interface Meter {
  createCounter(name: string, options: InstrumentOptions): { add: Take<Attributes> };
  createHistogram(name: string, options: InstrumentOptions): { record: Take<Attributes> };
  createObservableGauge(name: string, options: InstrumentOptions): ObservableGauge;
}

type Attributes = Readonly<Record<string, string | number>>;

interface ObservableGauge {
  addCallback(observe: Observe): void;
  removeCallback(observe: Observe): void;
}

type Observe = (result: { observe: Take }) => void;

type Take<Labels = SeriesLabels> = (value: number, labels: Labels) => void;

interface InstrumentOptions {
  readonly description: string;
  readonly unit: string;
  readonly advice?: { readonly explicitBucketBoundaries: number[] };
}

export function registeredMeter(): Meter | undefined {
  const api: { readonly metrics?: { getMeter(name: string): Meter } } | undefined = Reflect.get(
    globalThis,
    openTelemetry,
  );
  return api?.metrics?.getMeter("keelson");
}

/** A metric's first value creates its instrument. */
export function otelSink(meter: Meter): MetricSink & { close(): void } {
  const closers: (() => void)[] = [];
  const takers = new Map<MetricDeclaration, Take>();
  return {
    record: (metric, value, labels) => {
      const take = takers.get(metric) ?? takerOf(meter, metric, closers);
      takers.set(metric, take);
      take(value, labels);
    },
    /** The process can outlive this server. */
    close: () => {
      for (const close of closers.splice(0)) close();
    },
  };
}

function takerOf(
  meter: Meter,
  { name, kind, unit, text, buckets, integers }: MetricDeclaration,
  closers: (() => void)[],
): Take {
  const advice = buckets && { advice: { explicitBucketBoundaries: [...buckets] } };
  const options: InstrumentOptions = { description: text, unit, ...advice };
  switch (kind) {
    case "counter": {
      const counter = meter.createCounter(name, options);
      return (value, labels) => counter.add(value, labels);
    }
    case "histogram": {
      const histogram = meter.createHistogram(name, options);
      const attributesOf = attributesWith(integers);
      return (value, labels) => histogram.record(value, attributesOf(labels));
    }
    case "gauge": {
      // An observable gauge, because older SDKs have no synchronous gauge.
      const last = new Map<SeriesLabels, number>();
      const gauge = meter.createObservableGauge(name, options);
      const observe: Observe = (result) => {
        for (const [labels, value] of last) result.observe(value, labels);
      };
      gauge.addCallback(observe);
      closers.push(() => gauge.removeCallback(observe));
      return (value, labels) => void last.set(labels, value);
    }
  }
}

function attributesWith(integers: readonly string[] = []): (labels: SeriesLabels) => Attributes {
  if (integers.length === 0) return (labels) => labels;
  return bySeries((labels) =>
    Object.fromEntries(
      Object.entries(labels).map(([name, value]) => [
        name,
        integers.includes(name) ? Number(value) : value,
      ]),
    ),
  );
}
