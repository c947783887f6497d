import type { MetricSink, SeriesLabels } from "../../base/metrics/bounded-metrics.ts";
import type { MetricDeclaration } from "../../base/metrics/metric-list.ts";

/** The parts of OpenTelemetry's meter that are used; its package is not: what an SDK has registered is found without it. */
export interface Meter {
  createCounter(
    name: string,
    options: InstrumentOptions,
  ): { add(value: number, labels: Attributes): void };
  createHistogram(
    name: string,
    options: InstrumentOptions,
  ): { record(value: number, labels: Attributes): void };
  createObservableGauge(name: string, options: InstrumentOptions): ObservableGauge;
}

/** Labels as OpenTelemetry has them: some of its conventions are numbers. */
type Attributes = Readonly<Record<string, string | number>>;

interface ObservableGauge {
  addCallback(observe: Observe): void;
  removeCallback(observe: Observe): void;
}

type Observe = (result: { observe(value: number, labels: SeriesLabels): void }) => void;

interface InstrumentOptions {
  readonly description: string;
  readonly unit: string;
  readonly advice?: { readonly explicitBucketBoundaries: number[] };
}

/** Where OpenTelemetry's API keeps what SDKs register. */
const registered = Symbol.for("opentelemetry.js.api.1");

/** The meter of the SDK that has registered itself in this process; `undefined` where none has. */
export function registeredMeter(): Meter | undefined {
  // Safe: what lies there is what the API of this major version puts there.
  const { [registered]: api } = globalThis as {
    readonly [registered]?: { readonly metrics?: { getMeter(name: string): Meter } };
  };
  return api?.metrics?.getMeter("keelson");
}

/** Values that a meter takes, and that it asks for. */
export interface OtelSink extends MetricSink {
  /** Shows nothing of the moment any more: a process may go on with other servers. */
  close(): void;
}

/** Hands values to a meter. Instruments are made with the first value. */
export function otelSink(meter: Meter): OtelSink {
  const closers: (() => void)[] = [];
  const takers = new Map<MetricDeclaration, (value: number, labels: SeriesLabels) => void>();
  return {
    record: (metric, value, labels) => {
      let take = takers.get(metric);
      if (take === undefined) {
        take = takerOf(meter, metric, closers);
        takers.set(metric, take);
      }
      take(value, labels);
    },
    close: () => {
      for (const close of closers.splice(0)) close();
    },
  };
}

function takerOf(
  meter: Meter,
  { name, kind, unit, text, buckets, integers }: MetricDeclaration,
  closers: (() => void)[],
): (value: number, labels: SeriesLabels) => void {
  const options: InstrumentOptions = {
    description: text,
    unit,
    ...(buckets === undefined ? {} : { advice: { explicitBucketBoundaries: [...buckets] } }),
  };
  switch (kind) {
    case "counter": {
      const counter = meter.createCounter(name, options);
      return (value: number, labels: SeriesLabels) => counter.add(value, labels);
    }
    case "histogram": {
      const histogram = meter.createHistogram(name, options);
      const attributesOf = attributesWith(integers);
      return (value, labels) => histogram.record(value, attributesOf(labels));
    }
    case "gauge": {
      // Observed, since older SDKs have no other gauge.
      const last = new Map<SeriesLabels, number>();
      const gauge = meter.createObservableGauge(name, options);
      const observe: Observe = (result) => {
        for (const [labels, value] of last) result.observe(value, labels);
      };
      gauge.addCallback(observe);
      closers.push(() => gauge.removeCallback(observe));
      return (value: number, labels: SeriesLabels) => void last.set(labels, value);
    }
  }
}

/** Makes attributes of labels, numbers of those that are. The same series has the same object, so that it is made once. */
function attributesWith(integers: readonly string[] = []): (labels: SeriesLabels) => Attributes {
  if (integers.length === 0) return (labels) => labels;
  const made = new WeakMap<SeriesLabels, Attributes>();
  return (labels) => {
    let attributes = made.get(labels);
    if (attributes === undefined) {
      attributes = Object.fromEntries(
        Object.entries(labels).map(([name, value]) => [
          name,
          integers.includes(name) ? Number(value) : value,
        ]),
      );
      made.set(labels, attributes);
    }
    return attributes;
  };
}
