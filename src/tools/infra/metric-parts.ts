import type { DeclaredServer } from "../../app/registry/declared-server.ts";
import { type Registry, usesMessages } from "../../app/registry/registry.ts";
import { type AlarmSubject, metricAlarms } from "../../base/metrics/metric-alarms.ts";
import {
  type MetricDeclaration,
  type MetricName,
  metricList,
} from "../../base/metrics/metric-list.ts";
import type { RunbookPage } from "../../base/metrics/runbook.ts";
import {
  type Alarm,
  alarmPart,
  lineOf,
  metricPart,
  ownLine,
  ownNamespace,
  topicId,
} from "./alarm-part.ts";
import type { DataPlace } from "./data-parts.ts";
import type { Front } from "./front.ts";
import { functionIds } from "./function-part.ts";
import type { Duty, NeededFunction } from "./functions.ts";
import { hasTenants, type Needs, queuesOf } from "./needs.ts";
import { namePrefix } from "./parameters.ts";
import { logicalId, output, ref, resource, substituted, type Values } from "./template.ts";

export function alarmParts(
  functions: readonly NeededFunction[],
  needs: Needs,
  place: DataPlace,
  front: Front,
  isMeasured: boolean,
) {
  const events = functions.filter((one) => !isOfRequests(one));
  const outbox = functions.filter(isOfOutbox);
  // A Web Function measures as a container does, not in CloudWatch.
  const unmeasured = isMeasured ? (front.isWeb ? functions.filter(isOfRequests) : []) : functions;
  const isStream = ({ calledBy }: NeededFunction) => calledBy === "stream";
  const ofFunction = ({ name }: NeededFunction) => ({
    FunctionName: ref(functionIds(name).lambda),
  });
  const alarms: readonly Alarm[] = [
    ...queuesOf(needs).map(
      (queue): Alarm => ({
        name: `dead-${queue.kind}`,
        says: "A message is in a dead-letter queue, so its work is not done.",
        page: "dead-letters",
        metric: ["AWS/SQS", "ApproximateNumberOfMessagesVisible"],
        of: { QueueName: place.deadQueueName(queue) },
        statistic: "Maximum",
        minutes: [1, 1],
      }),
    ),
    { name: "http-errors", ...front.errors },
    ...events.map(
      (one): Alarm => ({
        name: `${one.name}-errors`,
        says: `The function ${one.name} does not start, crashes or runs out of time.`,
        page: "function-errors",
        metric: ["AWS/Lambda", "Errors"],
        of: ofFunction(one),
      }),
    ),
    // A Web Function has no such metric; only event functions have it.
    ...(front.isWeb && events.length === 0 ? [] : [throttles]),
    ...outbox.filter(isStream).map(
      (one): Alarm => ({
        name: `${one.name}-age`,
        says: "The stream of the outbox is read late, so events are late.",
        page: "late-events",
        metric: ["AWS/Lambda", "IteratorAge"],
        of: ofFunction(one),
        statistic: "Maximum",
        minutes: [5, 5],
        threshold: 60_000, // milliseconds
      }),
    ),
  ];
  return [
    resource(topicId, "AWS::SNS::Topic", { TopicName: substituted(`${namePrefix}-alarms`) }),
    output(`${topicId}Arn`, "The topic of alarms: subscribe to it", ref(topicId)),
    ...alarms.map(alarmPart),
    ...(isMeasured ? [] : outbox.filter((one) => !isStream(one)).flatMap(leftParts)),
    ...lineAlarms.flatMap((alarm) => lineParts(unmeasured, alarm)),
  ];
}

const isOfRequests = ({ calledBy }: NeededFunction) => calledBy === "requests";

const throttles: Alarm = {
  name: "throttles",
  says: "Lambda throttles functions of this account in this region.",
  page: "throttling",
  metric: ["AWS/Lambda", "Throttles"],
};

/** AWS has no metric for messages left in the outbox, so the sweep's log lines provide it. */
function leftParts({ name }: NeededFunction) {
  const metric = "outbox-left";
  return [
    metricPart(
      "OutboxLeftMetric",
      name,
      ownLine(lineOf("outbox.swept"), "$.left > 0"),
      metric,
      "$.left",
    ),
    alarmPart({
      name: metric,
      says: "Events or jobs are still in the outbox after a sweep.",
      page: "late-events",
      metric: [ownNamespace, metric],
      statistic: "Maximum",
    }),
  ];
}

/** `isOf` determines whether a function logs the line. */
type LineAlarm = readonly [
  name: string,
  line: string,
  isOf: (one: NeededFunction) => boolean,
  says: string,
  page: RunbookPage,
];

const does =
  (...some: readonly Duty[]) =>
  ({ duties }: NeededFunction) =>
    some.some((duty) => duties.has(duty));
const isOfOutbox = does("sweep-outbox", "send-due");

const lineAlarms: readonly LineAlarm[] = [
  [
    "events-set-aside",
    "event.set_aside",
    isOfOutbox,
    "The bus permanently refuses an event, so no consumer gets it.",
    "set-aside",
  ],
  [
    "jobs-set-aside",
    "job.set_aside",
    does("send-due"),
    "The queue permanently refuses a job that is due, so its work is not done.",
    "set-aside",
  ],
  [
    "schedules-given-up",
    "schedule.gave_up",
    ({ name }) => name === "schedule",
    "A schedule failed on every attempt and waits for its next time.",
    "schedule-gave-up",
  ],
  [
    "steps-unknown",
    "step.unknown",
    does("steps"),
    "The outcome of a step, such as a payment, is unknown, and an operator must resolve it.",
    "stuck-step",
  ],
];

function lineParts(all: readonly NeededFunction[], [name, line, isOf, says, page]: LineAlarm) {
  const functions = all.filter(isOf);
  if (functions.length === 0) return [];
  const idOf = (one: NeededFunction) => `${logicalId(name, "In")}${functionIds(one.name).id}Metric`;
  return [
    ...functions.map((one) => metricPart(idOf(one), one.name, ownLine(lineOf(line)), name, "1")),
    alarmPart({ name, says, page, metric: [ownNamespace, name], minutes: [1, 1] }),
  ];
}

export function metricVariables({ options }: DeclaredServer): Values {
  return options.metrics === undefined ? {} : { POWERTOOLS_METRICS_NAMESPACE: ownNamespace };
}

export function metricParts({ options, registry }: DeclaredServer) {
  if (options.metrics === undefined) return [];
  const service = serviceOf(options);
  return [
    ...metricAlarms
      .filter(({ of }) => hasSubject[of](registry))
      .map(({ metric, labels, ...alarm }) =>
        alarmPart({ ...alarm, metric: [ownNamespace, metric], of: { service, ...labels } }),
      ),
    dashboardPart(service, [...metricList, ...registry.metrics.values()]),
  ];
}

/** Not among the other alarms: a refusal only needs an operator if there are many. */
export function limitedAlarm({ options }: DeclaredServer, limited: number | undefined) {
  if (limited === undefined) return [];
  if (options.metrics === undefined)
    throw new Error(
      "the alarm for refusals by rate limits needs the metric keelson.rate_limited; give buildServer `metrics: {}`, or leave out --limited",
    );
  return [
    alarmPart({
      name: "rate-limited",
      says: "Rate limits refuse many requests.",
      page: "flooding-tenant",
      metric: [ownNamespace, "keelson.rate_limited" satisfies MetricName],
      of: { service: serviceOf(options) },
      threshold: limited,
    }),
  ];
}

function serviceOf({ metrics, dynamodb }: DeclaredServer["options"]): string {
  return metrics?.service ?? dynamodb?.prefix ?? "keelson";
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
