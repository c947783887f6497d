// biome-ignore-all lint/suspicious/noTemplateCurlyInString: CloudFormation's own placeholders
import { expect, test } from "vitest";
import { z } from "zod";
import { quiet, sheds, spades, templateOf } from "../../../test/support/server-templates.ts";
import { defineFeature } from "../../app/features/feature.ts";
import { metricAlarms } from "../../base/metrics/metric-alarms.ts";
import { type MetricDeclaration, metricList, otherOf } from "../../base/metrics/metric-list.ts";

const everything = defineFeature("everything", (r) => {
  r.table("everything", { partitionKey: "pk", tenant: true });
  r.job("thing.work", { input: z.object({}), handler: async () => 1 });
  r.metric("thing.made", { labels: { color: ["red"] } });
});
const measured = templateOf(
  [spades, sheds, everything],
  { stage: "dev" },
  { metrics: {}, dynamodb: { prefix: "garden" } },
);

/** The resources of a type. */
const of = (template: typeof measured, type: string) =>
  Object.values(template.Resources).filter(({ Type }) => Type === type);
const alarmsOf = (template: typeof measured) =>
  of(template, "AWS::CloudWatch::Alarm").map(
    ({ Properties }) => Properties as Readonly<Record<string, unknown>>,
  );

test("functions with metrics have all alarms, which use the metrics directly", () => {
  const alarms = alarmsOf(measured);

  for (const { name, metric, labels, statistic, threshold } of metricAlarms) {
    const dimensions = [["service", "garden"], ...Object.entries(labels)].map(([Name, Value]) => ({
      Name,
      Value,
    }));
    expect(alarms).toContainEqual(
      expect.objectContaining({
        AlarmName: { "Fn::Sub": `\${NamePrefix}-${name}` },
        Namespace: { "Fn::Sub": "${NamePrefix}" },
        MetricName: metric,
        Dimensions: dimensions,
        Statistic: statistic,
        Threshold: threshold,
        AlarmActions: [{ Ref: "AlarmTopic" }],
      }),
    );
  }
  expect(of(measured, "AWS::Logs::MetricFilter")).toEqual([]);
});

test("the alarm for refusals by rate limits exists only if asked for, and needs metrics", () => {
  const asked = { stage: "dev", limited: 50 };
  const template = templateOf([sheds], asked, { metrics: {}, dynamodb: { prefix: "garden" } });
  const isIt = ({ MetricName }: Readonly<Record<string, unknown>>) =>
    MetricName === "keelson.rate_limited";
  expect(alarmsOf(template).filter(isIt)).toMatchObject([
    {
      AlarmName: { "Fn::Sub": "${NamePrefix}-rate-limited" },
      Dimensions: [{ Name: "service", Value: "garden" }],
      Threshold: 50,
      EvaluationPeriods: 5,
      DatapointsToAlarm: 3,
    },
  ]);
  expect(alarmsOf(measured).filter(isIt)).toEqual([]);
  const declared = metricList.find(({ name }) => name === "keelson.rate_limited");
  expect(declared).not.toHaveProperty("dimensions"); // or the alarm would need them
  expect(() => templateOf([sheds], asked)).toThrow("`metrics: {}`, or leave out --limited");
});

test("each alarm uses all dimensions of its metric, with valid values", () => {
  for (const { metric, labels } of metricAlarms) {
    const declared = metricList.find(({ name }) => name === metric) as MetricDeclaration;
    expect(Object.keys(labels), metric).toEqual(declared.dimensions ?? []);
    for (const [label, value] of Object.entries(labels)) {
      expect(declared.labels[label]).toContain(value);
      expect(value).not.toBe(otherOf(label));
    }
  }
});

test("every function has the metric namespace of the alarms", () => {
  const variables = of(measured, "AWS::Lambda::Function").map(
    ({ Properties = {} }) => Object(Properties["Environment"]).Variables,
  );

  for (const known of variables)
    expect(known["POWERTOOLS_METRICS_NAMESPACE"]).toEqual({ "Fn::Sub": "${NamePrefix}" });
});

test("a server without tables, messages, schedules and keys has no alarms for them", () => {
  const names = alarmsOf(templateOf([quiet], {}, { metrics: { service: "quiet" } })).map(
    ({ MetricName }) => MetricName,
  );

  expect(names).toEqual(["5xx", "Throttles", "keelson.claims", "keelson.steps", "keelson.drains"]);
  const services = (metrics: object) =>
    alarmsOf(templateOf([quiet], {}, { metrics })).at(-1)?.["Dimensions"];
  expect(services({ service: "quiet" })).toContainEqual({ Name: "service", Value: "quiet" });
  expect(services({})).toContainEqual({ Name: "service", Value: "keelson" });
});

test("the dashboard shows all Lambda metrics, including the application's own, by existing dimensions", () => {
  const [dashboard] = of(measured, "AWS::CloudWatch::Dashboard");
  const text = String(Object(dashboard?.Properties?.["DashboardBody"])["Fn::Sub"]);
  const { widgets } = JSON.parse(text) as {
    widgets: {
      x: number;
      y: number;
      width: number;
      properties: { title: string; metrics: { expression: string }[][] };
    }[];
  };
  const shown: readonly MetricDeclaration[] = metricList;

  expect(widgets.map(({ properties }) => properties.title)).toEqual([
    ...shown.filter(({ host }) => host !== "container").map(({ name }) => name),
    "everything.thing.made",
  ]);
  const expressions = widgets.flatMap(({ properties }) =>
    properties.metrics.flat().map(({ expression }) => expression),
  );
  expect(expressions).toContain(
    `SEARCH('{"\${NamePrefix}","service","keelson.outcome"} MetricName="keelson.steps" service="garden"', 'Sum', 60)`,
  );
  expect(expressions).toContain(
    `SEARCH('{"\${NamePrefix}","service","http.route"} MetricName="http.server.request.duration" service="garden"', 'p99', 60)`,
  );
  expect(new Set(widgets.map(({ x, y }) => `${x} ${y}`)).size).toBe(widgets.length);
  for (const { x, width } of widgets) expect(x + width).toBeLessThanOrEqual(24);
  // What is substituted is CloudFormation's.
  expect([...new Set(text.match(/\$\{[^}]*\}/g))]).toEqual(["${AWS::Region}", "${NamePrefix}"]);
});

test("functions without metrics have no dashboard and no metric namespace", () => {
  const silent = templateOf([spades, sheds]);

  expect(of(silent, "AWS::CloudWatch::Dashboard")).toEqual([]);
  expect(JSON.stringify(silent)).not.toContain("POWERTOOLS_METRICS_NAMESPACE");
});
