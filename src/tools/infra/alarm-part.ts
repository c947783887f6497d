import { alarmDescription, type RunbookPage } from "../../base/metrics/runbook.ts";
import { functionIds } from "./function-part.ts";
import { namePrefix } from "./parameters.ts";
import { logicalId, ref, resource, substituted, type Value, type Values } from "./template.ts";

export interface Alarm {
  /** In kebab case: `dead-events`. */
  readonly name: string;
  /** One sentence, with its full stop. */
  readonly says: string;
  readonly page: RunbookPage;
  readonly metric: readonly [namespace: Value, name: string];
  /** Default: the whole account and region. */
  readonly of?: Values;
  readonly statistic?: "Sum" | "Maximum";
  /** Breaching minutes out of the latest. By default, a single failure raises no alarm. */
  readonly minutes?: readonly [above: number, of: number];
  readonly threshold?: number;
}

export const topicId = "AlarmTopic";
export const ownNamespace = substituted(namePrefix);

export function alarmPart({
  name,
  says,
  page,
  metric: [Namespace, MetricName],
  of,
  statistic = "Sum",
  minutes: [above, minutes] = [3, 5],
  threshold = 0,
}: Alarm) {
  return resource(logicalId(name, "Alarm"), "AWS::CloudWatch::Alarm", {
    AlarmName: substituted(`${namePrefix}-${name}`),
    AlarmDescription: alarmDescription(says, page),
    Namespace,
    MetricName,
    Dimensions: of && Object.entries(of).map(([Name, Value]) => ({ Name, Value })),
    Statistic: statistic,
    Period: 60,
    EvaluationPeriods: minutes,
    DatapointsToAlarm: above,
    Threshold: threshold,
    ComparisonOperator: "GreaterThanThreshold",
    TreatMissingData: "notBreaching",
    AlarmActions: [ref(topicId)],
  });
}

/** Counts lines in the log group of a function. */
export function metricPart(
  id: string,
  name: string,
  FilterPattern: string,
  MetricName: string,
  MetricValue: string,
) {
  return resource(id, "AWS::Logs::MetricFilter", {
    LogGroupName: ref(functionIds(name).logGroup),
    FilterPattern,
    MetricTransformations: [{ MetricNamespace: ownNamespace, MetricName, MetricValue }],
  });
}

/**
 * Excludes lines from browsers, which can contain any message. `NOT EXISTS` is needed: AWS does not
 * document whether `!=` matches a missing field.
 */
export function ownLine(...conditions: readonly string[]) {
  const all = [...conditions, '($.source NOT EXISTS || $.source != "client")'];
  return `{ ${all.join(" && ")} }`;
}

export function lineOf(msg: string) {
  return `$.msg = "${msg}"`;
}
