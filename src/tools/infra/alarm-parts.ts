import { apiId } from "./api-part.ts";
import type { DataPlace } from "./data-place.ts";
import { functionIds } from "./function-part.ts";
import type { NeededFunction } from "./functions.ts";
import { type Needs, queuesOf } from "./needs.ts";
import { namePrefix } from "./parameters.ts";
import { logicalId, ref, substituted, type TemplatePart, type Value } from "./template.ts";

export interface Alarm {
  /** Suffix of the alarm's name, in kebab case: `dead-events`. */
  readonly name: string;
  readonly says: string;
  readonly metric: readonly [namespace: Value, name: string];
  /** Default: the whole account and region. */
  readonly of?: Readonly<Record<string, Value>>;
  readonly statistic: "Sum" | "Maximum";
  /** Breaching minutes out of the latest minutes. */
  readonly minutes: readonly [above: number, of: number];
  readonly threshold?: number;
}

const topicId = "AlarmTopic";
/** One failure among many requests pages nobody. */
const lasting = [3, 5] as const;

export function alarmParts(
  functions: readonly NeededFunction[],
  needs: Needs,
  place: DataPlace,
  isMeasured = false,
): TemplatePart[] {
  const outbox = functions.filter(
    ({ duties }) => duties.has("sweep-outbox") || duties.has("send-due"),
  );
  return [
    topicPart,
    ...queuesOf(needs).map((queue) =>
      alarmPart({
        name: `dead-${queue.kind}`,
        says: "Something can never be done: queue.dead_lettered says what, and why",
        metric: ["AWS/SQS", "ApproximateNumberOfMessagesVisible"],
        of: { QueueName: place.deadQueueName(queue) },
        statistic: "Maximum",
        minutes: [1, 1],
      }),
    ),
    alarmPart({
      name: "http-errors",
      says: "Requests fail: errors and throttles of the functions behind the API among them",
      metric: ["AWS/ApiGateway", "5xx"],
      of: { ApiId: ref(apiId) },
      statistic: "Sum",
      minutes: lasting,
    }),
    ...functions.filter(({ calledBy }) => calledBy !== "requests").map(errorAlarm),
    alarmPart({
      name: "throttles",
      says: "Functions are not let run: the limit is the account's and its region's, and so is this metric",
      metric: ["AWS/Lambda", "Throttles"],
      statistic: "Sum",
      minutes: lasting,
    }),
    ...outbox.filter(({ calledBy }) => calledBy === "stream").map(ageAlarm),
    ...(isMeasured ? [] : logParts(functions, outbox)),
  ];
}

function logParts(
  functions: readonly NeededFunction[],
  outbox: readonly NeededFunction[],
): TemplatePart[] {
  return [
    ...outbox.filter(({ calledBy }) => calledBy !== "stream").flatMap(leftParts),
    ...lineParts(outbox, {
      name: "events-set-aside",
      line: "event.set_aside",
      says: "The bus refuses an event for good: event.set_aside says which, and why",
    }),
    ...lineParts(
      functions.filter(({ duties }) => duties.has("send-due")),
      {
        name: "jobs-set-aside",
        line: "job.set_aside",
        says: "A job that was due will never be taken: job.set_aside says which, and why",
      },
    ),
    ...lineParts(
      functions.filter(({ name }) => name === "schedule"),
      {
        name: "schedules-given-up",
        line: "schedule.gave_up",
        says: "A schedule has failed too often: schedule.gave_up says which",
      },
    ),
    ...lineParts(
      functions.filter(({ duties }) => duties.has("steps")),
      {
        name: "steps-unknown",
        line: "step.unknown",
        says: "A step waits for somebody to say how it ended: step.unknown says which, keelson steps resolves it",
      },
    ),
  ];
}

const topicPart: TemplatePart = {
  Resources: {
    [topicId]: {
      Type: "AWS::SNS::Topic",
      Properties: { TopicName: substituted(`${namePrefix}-alarms`) },
    },
  },
  Outputs: {
    [`${topicId}Arn`]: { Description: "The topic of alarms: subscribe to it", Value: ref(topicId) },
  },
};

function errorAlarm({ name }: NeededFunction): TemplatePart {
  return alarmPart({
    name: `${name}-errors`,
    says: `The function ${name} does not start, or runs out of time`,
    metric: ["AWS/Lambda", "Errors"],
    of: { FunctionName: ref(functionIds(name).lambda) },
    statistic: "Sum",
    minutes: lasting,
  });
}

function ageAlarm({ name }: NeededFunction): TemplatePart {
  return alarmPart({
    name: `${name}-age`,
    says: "The stream of the outbox is read late: events come late",
    metric: ["AWS/Lambda", "IteratorAge"],
    of: { FunctionName: ref(functionIds(name).lambda) },
    statistic: "Maximum",
    minutes: [5, 5],
    threshold: 60_000, // milliseconds
  });
}

/** AWS has no metric for the age of the outbox, so this counts the sweep's log lines. */
function leftParts({ name }: NeededFunction): TemplatePart[] {
  const metric = "outbox-left";
  return [
    metricPart("OutboxLeftMetric", name, ownLine("outbox.swept", "$.left > 0"), metric, "$.left"),
    alarmPart({
      name: metric,
      says: "The outbox holds what a sweep could not send: event.dispatch_failed or job.dispatch_failed says why",
      metric: [ownNamespace, metric],
      statistic: "Maximum",
      minutes: lasting,
    }),
  ];
}

interface LineAlarm {
  readonly name: string;
  readonly line: string;
  readonly says: string;
}

function lineParts(
  functions: readonly NeededFunction[],
  { name, line, says }: LineAlarm,
): TemplatePart[] {
  if (functions.length === 0) return [];
  return [
    ...functions.map((one) =>
      metricPart(
        `${logicalId(name, "In")}${functionIds(one.name).id}Metric`,
        one.name,
        ownLine(line),
        name,
        "1",
      ),
    ),
    alarmPart({ name, says, metric: [ownNamespace, name], statistic: "Sum", minutes: [1, 1] }),
  ];
}

/**
 * Excludes browser lines, which can contain any message. AWS does not document whether `!=` matches
 * a missing field, hence `NOT EXISTS`.
 */
function ownLine(msg: string, ...more: readonly string[]): string {
  const conditions = [`$.msg = "${msg}"`, ...more, '($.source NOT EXISTS || $.source != "client")'];
  return `{ ${conditions.join(" && ")} }`;
}

const ownNamespace = substituted(namePrefix);

function metricPart(
  id: string,
  name: string,
  pattern: string,
  metric: string,
  value: string,
): TemplatePart {
  return {
    Resources: {
      [id]: {
        Type: "AWS::Logs::MetricFilter",
        Properties: {
          LogGroupName: ref(functionIds(name).logGroup),
          FilterPattern: pattern,
          MetricTransformations: [
            { MetricNamespace: ownNamespace, MetricName: metric, MetricValue: value },
          ],
        },
      },
    },
  };
}

export function alarmPart({
  name,
  says,
  metric: [namespace, metric],
  of,
  statistic,
  minutes,
  threshold = 0,
}: Alarm): TemplatePart {
  const [above, minutesOf] = minutes;
  return {
    Resources: {
      [logicalId(name, "Alarm")]: {
        Type: "AWS::CloudWatch::Alarm",
        Properties: {
          AlarmName: substituted(`${namePrefix}-${name}`),
          AlarmDescription: says,
          Namespace: namespace,
          MetricName: metric,
          ...(of === undefined
            ? {}
            : { Dimensions: Object.entries(of).map(([Name, Value]) => ({ Name, Value })) }),
          Statistic: statistic,
          Period: 60,
          EvaluationPeriods: minutesOf,
          DatapointsToAlarm: above,
          Threshold: threshold,
          ComparisonOperator: "GreaterThanThreshold",
          TreatMissingData: "notBreaching",
          AlarmActions: [ref(topicId)],
        },
      },
    },
  };
}
