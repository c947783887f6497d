import type { MetricDeclaration } from "./metric-list.ts";

const unitEnds = new Map([
  ["s", "_seconds"],
  ["ms", "_milliseconds"],
  ["By", "_bytes"],
  ["%", "_percent"],
]);

/** Returns a name by OpenTelemetry's compatibility rules, without repeating a suffix. */
export function prometheusName({
  name,
  kind,
  unit,
}: Pick<MetricDeclaration, "name" | "kind" | "unit">): string {
  const isCounter = kind === "counter";
  const label = prometheusLabel(name);
  const base = isCounter ? label.replace(/_total$/, "") : label;
  const end = unitEnds.get(unit) ?? "";
  return `${base}${base.endsWith(end) ? "" : end}${isCounter ? "_total" : ""}`;
}

export function prometheusLabel(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9_]/g, "_");
}
