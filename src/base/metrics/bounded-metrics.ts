import {
  type LabelSource,
  type LabelValues,
  type MetricDeclaration,
  metricList,
  otherOf,
} from "./metric-list.ts";
import type { MetricLabels, Metrics } from "./metrics.ts";

/** Labels as they go out: all values are of those that the label may have. The same series has the same object. */
export type SeriesLabels = Readonly<Record<string, string>>;

/** Where values go. */
export interface MetricSink {
  record(metric: MetricDeclaration, value: number, labels: SeriesLabels): void;
}

/** What labels may be that a server declares. */
export type DeclaredLabels = Readonly<Record<Exclude<LabelSource, "statuses">, Iterable<string>>>;

/** What {@link createMetrics} works with. */
export interface BoundedMetricsOptions {
  /** Metrics of features, with whole names. */
  readonly own: Iterable<MetricDeclaration>;
  readonly declared: DeclaredLabels;
  readonly sinks: readonly MetricSink[];
}

/** How many series a metric may have; more are one, whose labels are all `other`. */
export const maxSeries = 2_000;

/** The largest value that CloudWatch takes. Sums of such values stay finite, which a counter never recovers from otherwise. */
const maxValue = 2 ** 360;

/** Of how many metrics it is told that they were not taken. */
const maxTold = 100;

/**
 * Holds what is measured to the declarations, before it goes anywhere: labels have the values that they may have, so that what
 * comes from outside neither fills the memory nor tells whose it is.
 */
export function createMetrics({
  own,
  declared,
  sinks,
}: BoundedMetricsOptions): Pick<Metrics, "record" | "add"> {
  const allowed = allowedIn(declared);
  const ours = new Map<string, Series>(
    metricList.map((metric) => [metric.name, new Series(metric, allowed)]),
  );
  const theirs = new Map<string, Series>(
    [...own].map((metric) => [metric.name, new Series(metric, allowed)]),
  );
  /** What the last of those that failed has thrown: one takes nothing from the others. */
  const give = (
    metric: MetricDeclaration,
    value: number,
    labels: SeriesLabels,
  ): { readonly error: unknown } | undefined => {
    let failure: { readonly error: unknown } | undefined;
    for (const sink of sinks) {
      try {
        sink.record(metric, value, labels);
      } catch (error) {
        failure = { error };
      }
    }
    return failure;
  };
  const told = new Set<string>();
  /** The reason, where it is the first of this metric. */
  const refused = (name: string, reason: string): string | undefined => {
    const key = typeof name === "string" ? `=${name}` : typeof name; // plain JavaScript gives anything
    if (told.has(key) || told.size >= maxTold) return undefined;
    told.add(key);
    return reason;
  };
  return {
    record: (name, value, ...given) => {
      const [labels = {}]: readonly MetricLabels[] = given;
      const series = ours.get(name) as Series; // safe: each name is of the list
      give(series.metric, value, series.of(labels)); // whoever reads metrics may fail; what is measured goes on
    },
    add: (name, value, labels = {}) => {
      const series = theirs.get(name);
      if (series === undefined) return refused(name, undeclared(theirs.keys(), name));
      if (typeof value !== "number" || !(value >= 0 && value <= maxValue))
        return refused(name, "its value is not a number from 0 to 2^360");
      let found: SeriesLabels;
      try {
        found = series.of(labels);
      } catch {
        return refused(name, "its labels cannot be read");
      }
      const failure = give(series.metric, value, found);
      return failure && refused(name, textOf(failure.error));
    },
  };
}

/** A feature is easily forgotten: `r.metric` takes a name without it. */
function undeclared(known: Iterable<string>, name: unknown): string {
  const whole = [...known].find((one) => one.slice(one.indexOf(".") + 1) === name);
  return whole === undefined
    ? "no feature of this server declares it; add r.metric"
    : `its whole name is ${whole}`;
}

type Allowed = (values: LabelValues) => (value: string) => boolean;

function allowedIn(declared: DeclaredLabels): Allowed {
  const isStatus = (value: string) => /^[1-5]\d\d$/.test(value);
  const isIn = (values: Iterable<string>) => {
    const known = new Set(values);
    return (value: string) => known.has(value);
  };
  return (values) => {
    if (values === "statuses") return isStatus;
    return isIn(typeof values === "string" ? declared[values] : values);
  };
}

/** The series of a metric that were met. */
class Series {
  readonly metric: MetricDeclaration;
  readonly #labels: readonly (readonly [
    name: string,
    isAllowed: (value: string) => boolean,
    other: string,
  ])[];
  readonly #known = new Map<string, SeriesLabels>();
  readonly #others: SeriesLabels;

  constructor(metric: MetricDeclaration, allowed: Allowed) {
    this.metric = metric;
    this.#labels = Object.entries(metric.labels).map(([name, values]) => [
      name,
      allowed(values),
      otherOf(name),
    ]);
    this.#others = Object.freeze(
      Object.fromEntries(this.#labels.map(([name, , other]) => [name, other])),
    );
  }

  of(labels: MetricLabels): SeriesLabels {
    let given = "";
    for (const [name] of this.#labels) given += part(labelOf(labels, name));
    // Only what is allowed is kept, so that what is found is.
    return this.#known.get(given) ?? this.#bounded(labels);
  }

  #bounded(labels: MetricLabels): SeriesLabels {
    let key = "";
    const values: (string | undefined)[] = [];
    for (const [name, isAllowed, other] of this.#labels) {
      const text = labelOf(labels, name);
      const value = text === undefined || isAllowed(text) ? text : other;
      values.push(value);
      key += part(value);
    }
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    if (this.#known.size >= maxSeries) return this.#others;
    const made: Record<string, string> = {};
    for (const [index, [name]] of this.#labels.entries()) {
      const value = values[index];
      if (value !== undefined) made[name] = value;
    }
    this.#known.set(key, Object.freeze(made));
    return made;
  }
}

/** What an application's own reader has thrown may be anything. */
function textOf(error: unknown): string {
  return error instanceof Error
    ? `${error.name}: ${error.message}`
    : "a reader of metrics has failed";
}

function labelOf(labels: MetricLabels, name: string): string | undefined {
  const given = Object.hasOwn(labels, name) ? labels[name] : undefined;
  return given === undefined ? undefined : String(given);
}

function part(value: string | undefined): string {
  return value === undefined ? "-\n" : `=${value}\n`;
}
