import { eventType, type RawOptions, type Report, unknownOptions } from "../errors/option-table.ts";
import type { MetricDeclaration } from "./metric-list.ts";

/** Options of `r.metric`. */
export interface MetricOptions<Labels = Readonly<Record<string, readonly string[]>>> {
  /** A `counter` sums values, a `histogram` counts them per bucket. Default `counter`. */
  readonly kind?: "counter" | "histogram";
  /** UCUM unit: `s`, `ms`, `By`, `%` or a counted thing, such as `{order}`. Default `1`. */
  readonly unit?: string;
  /**
   * Up to four labels of letters, digits and `_`, each with up to 50 allowed ASCII values. Any
   * other value becomes `other`. Default: none.
   */
  readonly labels?: Labels;
  /** Upper bounds of buckets. Default: the exporter's, in Prometheus 0.005 to 10, for seconds. */
  readonly buckets?: readonly number[];
  /** Description of the metric in one sentence. Default: none. */
  readonly text?: string;
}

export interface OwnMetricDeclaration extends MetricDeclaration {
  readonly feature: string;
}

/** Reports all faults as one problem, to keep this code small, because every cold start loads it. */
export function metric(
  feature: string,
  name: string,
  options: RawOptions,
  report: Report,
): OwnMetricDeclaration {
  const key = `metric ${feature}.${name}`;
  unknownOptions(key, options, ["kind", "unit", "labels", "buckets", "text"], report);
  const { kind = "counter", unit = "1", labels = {}, buckets, text = "" } = options ?? {};
  const entries = Object.entries(Object(labels));
  const isSound =
    eventType.test(name) &&
    // OpenTelemetry reserves these names.
    !/^(http|db|messaging|nodejs)$/.test(feature) &&
    /^(counter|histogram)$/.test(String(kind)) &&
    isTexts([unit, text]) &&
    entries.length <= 4 &&
    // CloudWatch and Prometheus accept these labels, and reserve the three excluded names.
    entries.every(
      ([label, values]) =>
        /^(?!(?:le|quantile|service)$)[a-z]\w{0,62}$/i.test(label) &&
        isTexts(values) &&
        values.every((value) => /^[!-9;-~][ -~]*$/.test(value)),
    ) &&
    (buckets === undefined ||
      (Array.isArray(buckets) &&
        buckets.every((bound, at) => Number.isFinite(bound) && bound > (buckets[at - 1] ?? -1))));
  if (!isSound) {
    const fix =
      'name it <entity>.<name>, of kind counter or histogram, with a unit such as "s" or "{order}", up to 4 labels, each a word with up to 50 ASCII strings, except le, quantile and service, and ascending buckets';
    report({ key, rule: "metric", message: "it is not valid", fix });
  }
  // Safe: wrong types are reported, and a server with problems is never built.
  const given = { kind, unit, labels, text, ...(buckets === undefined ? {} : { buckets }) } as Omit<
    MetricDeclaration,
    "name"
  >;
  return Object.freeze({
    ...given,
    feature,
    name: `${feature}.${name}`,
    dimensions: entries.map(([label]) => label),
  });
}

function isTexts(values: unknown): values is readonly string[] {
  return (
    Array.isArray(values) &&
    values.length <= 50 &&
    values.every((value) => typeof value === "string" && value.length <= 300)
  );
}
