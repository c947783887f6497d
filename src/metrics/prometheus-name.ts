import type { MetricDeclaration } from "./metric-list.ts";

const unitEnds: Readonly<Record<string, string>> = { s: "_seconds", ms: "_milliseconds", By: "_bytes", "%": "_percent" };

/** What Prometheus calls a metric, as OpenTelemetry's rules of compatibility have it. */
export function prometheusName({ name, kind, unit }: Pick<MetricDeclaration, "name" | "kind" | "unit">): string {
  return `${prometheusLabel(name)}${unitEnds[unit] ?? ""}${kind === "counter" ? "_total" : ""}`;
}

/** What Prometheus calls a label. */
export function prometheusLabel(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9_]/g, "_");
}
