import {
  type LabelSource,
  type LabelValues,
  type MetricDeclaration,
  metricList,
  otherOf,
} from "./metric-list.ts";
import type { MetricLabels, Metrics } from "./metrics.ts";

export type SeriesLabels = Readonly<Record<string, string>>;

/** Keeps what `make` returns, because a series always passes the same labels object. */
export function bySeries<Made>(make: (labels: SeriesLabels) => Made) {
  const made = new WeakMap<SeriesLabels, Made>();
  return (labels: SeriesLabels): Made => {
    const known = made.get(labels) ?? make(labels);
    made.set(labels, known);
    return known;
  };
}

export interface MetricSink {
  record(metric: MetricDeclaration, value: number, labels: SeriesLabels): void;
}

export type DeclaredLabels = Readonly<Record<Exclude<LabelSource, "statuses">, Iterable<string>>>;

/** Most series of a metric. All further ones share one, labelled `other`. */
export const maxSeries = 2_000;

/** CloudWatch's maximum. Keeps sums finite, because no counter recovers from infinity. */
const maxValue = 2 ** 360;

const maxTold = 100;

/** Labels only have declared values: input can neither fill the memory nor identify a tenant. */
export function createMetrics({
  own,
  declared,
  sinks,
}: {
  readonly own: Iterable<MetricDeclaration>;
  readonly declared: DeclaredLabels;
  readonly sinks: readonly MetricSink[];
}): Pick<Metrics, "record" | "add"> {
  const allowed = allowedIn(declared);
  const seriesOf = (metrics: Iterable<MetricDeclaration>) =>
    new Map<string, Series>(
      [...metrics].map((metric) => [metric.name, new Series(metric, allowed)]),
    );
  const ours = seriesOf(metricList);
  const theirs = seriesOf(own);
  const give = (...given: Parameters<MetricSink["record"]>) => {
    let failure: { readonly error: unknown } | undefined;
    for (const sink of sinks) {
      try {
        sink.record(...given);
      } catch (error) {
        failure = { error };
      }
    }
    return failure;
  };
  const told = new Set<string>();
  const refused = (name: string, reason: string) => {
    const key = typeof name === "string" ? `=${name}` : typeof name; // plain JavaScript may pass any value
    if (told.has(key) || told.size >= maxTold) return undefined;
    told.add(key);
    return reason;
  };
  return {
    record: (name, value, ...given) => {
      const [labels = {}]: readonly MetricLabels[] = given;
      const series = ours.get(name) as Series; // safe: the type restricts names to the list
      give(series.metric, value, series.of(labels)); // a failed sink must not stop the measured work
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

/** Callers easily omit the feature, because `r.metric` omits it. */
function undeclared(known: Iterable<string>, name: unknown): string {
  const whole = [...known].find((one) => one.slice(one.indexOf(".") + 1) === name);
  return whole === undefined
    ? "no feature of this server declares it; add r.metric"
    : `its whole name is ${whole}`;
}

type Allowed = (values: LabelValues) => (value: string) => boolean;

function allowedIn(declared: DeclaredLabels): Allowed {
  return (values) => {
    if (values === "statuses") return (value) => /^[1-5]\d\d$/.test(value);
    const known = new Set(typeof values === "string" ? declared[values] : values);
    return (value) => known.has(value);
  };
}

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
    // The map only contains allowed labels, so a label found there is valid.
    return this.#known.get(given) ?? this.#bounded(labels);
  }

  #bounded(labels: MetricLabels): SeriesLabels {
    let key = "";
    const made: Record<string, string> = {};
    for (const [name, isAllowed, other] of this.#labels) {
      const text = labelOf(labels, name);
      const value = text === undefined || isAllowed(text) ? text : other;
      if (value !== undefined) made[name] = value;
      key += part(value);
    }
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    if (this.#known.size >= maxSeries) return this.#others;
    this.#known.set(key, Object.freeze(made));
    return made;
  }
}

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
