import { expect, test } from "vitest";
import { metricAlarms } from "../../src/base/metrics/metric-alarms.ts";
import { type MetricDeclaration, metricList } from "../../src/base/metrics/metric-list.ts";
import { textOf } from "./markdown.ts";

const metrics: readonly MetricDeclaration[] = metricList;

const labelText = ([label, values]: [string, MetricDeclaration["labels"][string]]) => {
  const among =
    typeof values === "string" ? undefined : values.length <= 6 ? values.join(", ") : undefined;
  return `\`${label}\`${among === undefined ? "" : `: ${among}`}`;
};

/** The rows of the table as the list has them. */
const rows = metrics.map(({ name, kind, unit, labels, text }) => {
  const shown = Object.entries(labels).map(labelText).join("; ");
  return `| \`${name}\` | ${kind} | \`${unit}\` | ${shown} | ${text} |`;
});

test("the table of metrics matches the list in code", () => {
  const [, table = ""] =
    /\n\| Metric \| Kind [^\n]*\n\|[-|]*\n((?:\|[^\n]*\n)+)/.exec(textOf("docs/metrics.md")) ?? [];

  expect(table.trim().split("\n")).toEqual(rows);
});

test("the table of alarms contains every metric alarm", () => {
  const table = textOf("docs/alarms.md").split("## Alarms")[1]?.split("\n## ")[0] ?? "";

  expect(metricAlarms.filter(({ name }) => !table.includes(`\`${name}\``))).toEqual([]);
});

test("every description is a full sentence", () => {
  for (const { name, text } of metrics) expect(text, name).toMatch(/^[A-Z].*\.$/);
});
