import type { MetricDeclaration } from "../../base/metrics/metric-list.ts";
import { isEventType } from "../../parts/messages/check-payload.ts";
import { type RawOptions, type Report, unknownOptions } from "./declare.ts";

/** Options of a metric. */
export interface MetricOptions {
  /** `counter` adds up what it is given, `histogram` counts the values themselves. Default `counter`. */
  readonly kind?: "counter" | "histogram";
  /** As UCUM has it: `s`, `ms`, `By`, `%`, or what is counted, such as `{order}`. Default `1`. */
  readonly unit?: string;
  /**
   * Up to four labels, of letters, digits and `_`, with up to 50 values that each may have: any other becomes `other`. Values are
   * of ASCII, as CloudWatch has it. Default none.
   */
  readonly labels?: Readonly<Record<string, readonly string[]>>;
  /** The upper bounds of a histogram's buckets. Default from 5 ms to 10 s. */
  readonly buckets?: readonly number[];
  /** What it says, in one sentence. */
  readonly text?: string;
}

/** A metric that a feature declares. */
export interface OwnMetricDeclaration extends MetricDeclaration {
  readonly feature: string;
}

/** Registers a metric. One problem for all that can be wrong with it, since every start of a function reads this. */
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
    isEventType(name) &&
    // Those are OpenTelemetry's own.
    !/^(http|db|messaging|nodejs)$/.test(feature) &&
    /^(counter|histogram)$/.test(String(kind)) &&
    isTexts([unit, text]) &&
    entries.length <= 4 &&
    // What CloudWatch and Prometheus take for names and values; three names are their own.
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
      'name it <entity>.<name>, of kind counter or histogram, with a unit such as "s" or "{order}", up to 4 labels, each a word with up to 50 texts of ASCII and none of le, quantile or service, and ascending buckets';
    report({ key, rule: "metric", message: "it cannot be taken", fix });
  }
  // Safe: what does not have its type was reported, and such a server is never built.
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
