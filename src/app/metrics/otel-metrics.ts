import type { MetricSink, SeriesLabels } from "../../base/metrics/bounded-metrics.ts";
import type { MetricDeclaration } from "../../base/metrics/metric-list.ts";

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

/** Symbol under which OpenTelemetry's API keeps the registered SDK. */
const registered = Symbol.for("opentelemetry.js.api.1");

export function registeredMeter(): Meter | undefined {
  // Safe: the symbol names the API's major version.
  const { [registered]: api } = globalThis as {
    readonly [registered]?: { readonly metrics?: { getMeter(name: string): Meter } };
  };
  return api?.metrics?.getMeter("keelson");
}

/** A metric's first value creates its instrument. */
export function otelSink(meter: Meter): MetricSink & { close(): void } {
  const closers: (() => void)[] = [];
  const takers = new Map<MetricDeclaration, Take>();
  return {
    record: (metric, value, labels) => {
      let take = takers.get(metric);
      if (take === undefined) {
        take = takerOf(meter, metric, closers);
        takers.set(metric, take);
      }
      take(value, labels);
    },
    /** Removes the gauges' callbacks, because the process can outlive this server. */
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

/** Converts labels, and caches them, because a series always passes the same object. */
function attributesWith(integers: readonly string[] = []): (labels: SeriesLabels) => Attributes {
  if (integers.length === 0) return (labels) => labels;
  const made = new WeakMap<SeriesLabels, Attributes>();
  return (labels) => {
    const known = made.get(labels);
    if (known !== undefined) return known;
    const attributes = Object.fromEntries(
      Object.entries(labels).map(([name, value]) => [
        name,
        integers.includes(name) ? Number(value) : value,
      ]),
    );
    made.set(labels, attributes);
    return attributes;
  };
}
