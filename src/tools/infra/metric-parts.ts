import type { DeclaredServer } from "../../app/registry/declared-server.ts";
import { usesMessages } from "../../app/registry/registry.ts";
import { type AlarmSubject, metricAlarms } from "../../base/metrics/metric-alarms.ts";
import { type MetricDeclaration, metricList } from "../../base/metrics/metric-list.ts";
import { alarmPart } from "./alarm-parts.ts";
import { namePrefix } from "./parameters.ts";
import { substituted, type TemplatePart, type Value } from "./template.ts";

export function metricVariables({ options }: DeclaredServer): Readonly<Record<string, Value>> {
  return options.metrics === undefined
    ? {}
    : { POWERTOOLS_METRICS_NAMESPACE: substituted(namePrefix) };
}

/**
 * Creates alarms on the functions' metrics and a dashboard. Returns no parts if the server does not
 * publish metrics.
 */
export function metricParts(server: DeclaredServer): TemplatePart[] {
  const { options, registry } = server;
  if (options.metrics === undefined) return [];
  const service = options.metrics.service ?? options.dynamodb?.prefix ?? "keelson";
  const alarms = metricAlarms.filter(({ of }) => hasSubject(server, of));
  return [
    ...alarms.map(({ metric, labels, ...alarm }) =>
      alarmPart({
        ...alarm,
        metric: [substituted(namePrefix), metric],
        of: { service, ...labels },
      }),
    ),
    dashboardPart(service, [...metricList, ...registry.metrics.values()]),
  ];
}

function hasSubject({ registry }: DeclaredServer, subject: AlarmSubject): boolean {
  switch (subject) {
    case "anything":
      return true;
    case "outbox":
      return usesMessages(registry);
    case "events":
      return registry.events.size > 0;
    case "jobs":
      return usesMessages(registry);
    case "schedules":
      return registry.schedules.size > 0;
    case "tenants":
      return [...registry.tables.values()].some(({ tenant }) => tenant === true);
    case "config":
      return registry.configKeys.size > 0;
  }
}

const [width, height] = [8, 6];

function dashboardPart(service: string, metrics: readonly MetricDeclaration[]): TemplatePart {
  const widgets = metrics
    .filter(({ host }) => host !== "container")
    .map((metric, index) => ({
      type: "metric",
      x: (index * width) % 24,
      y: Math.floor((index * width) / 24) * height,
      width,
      height,
      properties: {
        title: metric.name,
        // biome-ignore lint/suspicious/noTemplateCurlyInString: CloudFormation's own placeholder
        region: "${AWS::Region}",
        metrics: statisticsOf(metric).map((statistic) => [
          { expression: searchFor(metric, service, statistic) },
        ]),
      },
    }));
  return {
    Resources: {
      Dashboard: {
        Type: "AWS::CloudWatch::Dashboard",
        Properties: {
          DashboardName: substituted(namePrefix),
          DashboardBody: substituted(JSON.stringify({ widgets })),
        },
      },
    },
  };
}

function statisticsOf({ kind }: MetricDeclaration): readonly string[] {
  return { counter: ["Sum"], histogram: ["p50", "p99"], gauge: ["Maximum"] }[kind];
}

/** Draws one line for each set of dimensions, because label values change over time. */
function searchFor(
  { name, dimensions = [] }: MetricDeclaration,
  service: string,
  statistic: string,
): string {
  const schema = [namePrefix, "service", ...dimensions].map((part) => `"${part}"`).join(",");
  return `SEARCH('{${schema}} MetricName="${name}" service="${service}"', '${statistic}', 60)`;
}
