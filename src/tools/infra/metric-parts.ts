import type { DeclaredServer } from "../../app/registry/declared-server.ts";
import { type Registry, usesMessages } from "../../app/registry/registry.ts";
import { type AlarmSubject, metricAlarms } from "../../base/metrics/metric-alarms.ts";
import { type MetricDeclaration, metricList } from "../../base/metrics/metric-list.ts";
import { alarmPart, ownNamespace } from "./alarm-parts.ts";
import { hasTenants } from "./needs.ts";
import { namePrefix } from "./parameters.ts";
import { resource, substituted, type TemplatePart, type Values } from "./template.ts";

export function metricVariables({ options }: DeclaredServer): Values {
  return options.metrics === undefined ? {} : { POWERTOOLS_METRICS_NAMESPACE: ownNamespace };
}

export function metricParts({ options, registry }: DeclaredServer): TemplatePart[] {
  if (options.metrics === undefined) return [];
  const service = options.metrics.service ?? options.dynamodb?.prefix ?? "keelson";
  const alarms = metricAlarms.filter(({ of }) => hasSubject[of](registry));
  return [
    ...alarms.map(({ metric, labels, ...alarm }) =>
      alarmPart({ ...alarm, metric: [ownNamespace, metric], of: { service, ...labels } }),
    ),
    dashboardPart(service, [...metricList, ...registry.metrics.values()]),
  ];
}

const hasSubject: Readonly<Record<AlarmSubject, (registry: Registry) => boolean>> = {
  anything: () => true,
  outbox: usesMessages,
  events: ({ events }) => events.size > 0,
  jobs: usesMessages,
  schedules: ({ schedules }) => schedules.size > 0,
  tenants: hasTenants,
  config: ({ configKeys }) => configKeys.size > 0,
};

const [width, height] = [8, 6];

function dashboardPart(service: string, metrics: readonly MetricDeclaration[]) {
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
        metrics: statistics[metric.kind].map((statistic) => [
          { expression: searchFor(metric, service, statistic) },
        ]),
      },
    }));
  return resource("Dashboard", "AWS::CloudWatch::Dashboard", {
    DashboardName: substituted(namePrefix),
    DashboardBody: substituted(JSON.stringify({ widgets })),
  });
}

const statistics = { counter: ["Sum"], histogram: ["p50", "p99"], gauge: ["Maximum"] } as const;

/** Draws one line for each set of dimensions, because label values change over time. */
function searchFor(
  { name, dimensions = [] }: MetricDeclaration,
  service: string,
  statistic: string,
) {
  const schema = [namePrefix, "service", ...dimensions].map((part) => `"${part}"`).join(",");
  return `SEARCH('{${schema}} MetricName="${name}" service="${service}"', '${statistic}', 60)`;
}
