import type { MetricName } from "./metric-list.ts";

export type AlarmSubject =
  | "anything"
  | "outbox"
  | "events"
  | "jobs"
  | "schedules"
  | "tenants"
  | "config";

/** Alarm that requires an operator to act. */
interface MetricAlarm {
  readonly name: string;
  readonly metric: MetricName;
  /** All dimensions of the metric, because an alarm matches only the exact set. */
  readonly labels: Readonly<Record<string, string>>;
  readonly statistic: "Sum" | "Maximum";
  readonly threshold: number;
  /** Number of minutes that must exceed the threshold, out of the latest minutes. */
  readonly minutes: readonly [above: number, of: number];
  readonly of: AlarmSubject;
  readonly says: string;
}

const once = [1, 1] as const;
/** Several minutes, so that one failure among many calls raises no alarm. */
const lasting = [3, 5] as const;

const counted = (
  name: string,
  metric: MetricName,
  labels: MetricAlarm["labels"],
  of: AlarmSubject,
  says: string,
): MetricAlarm => ({
  name,
  metric,
  labels,
  statistic: "Sum",
  threshold: 0,
  minutes: once,
  of,
  says,
});

const givenUp = (kind: string, of: AlarmSubject, says: string) =>
  counted(`given-up-${kind}`, "keelson.dead_letters", { "keelson.kind": kind }, of, says);

export const metricAlarms: readonly MetricAlarm[] = Object.freeze([
  {
    name: "outbox-age",
    metric: "keelson.outbox.age",
    labels: {},
    statistic: "Maximum",
    threshold: 300,
    minutes: lasting,
    of: "outbox",
    says: "Events wait longer than five minutes in the outbox; event.dispatch_failed has the reason",
  },
  givenUp(
    "event",
    "events",
    "An event was given up; queue.dead_lettered or event.set_aside has the event and the reason",
  ),
  givenUp(
    "job",
    "jobs",
    "A job was given up; queue.dead_lettered or job.set_aside has the job and the reason",
  ),
  givenUp(
    "delivery",
    "jobs",
    "A delivery was given up; queue.dead_lettered has the delivery and the reason",
  ),
  givenUp("schedule", "schedules", "A schedule failed too often; schedule.gave_up has its name"),
  counted(
    "unknown-claims",
    "keelson.claims",
    { "keelson.outcome": "unknown" },
    "anything",
    "The outcome of a run is unknown; commit_uncertain, completion_failed or a timeout has the run",
  ),
  counted(
    "unknown-steps",
    "keelson.steps",
    { "keelson.outcome": "unknown" },
    "anything",
    "The outcome of a step is unknown, and an operator must resolve it with keelson steps; step.unknown has the step",
  ),
  counted(
    "walls-hit",
    "keelson.wall.hits",
    {},
    "tenants",
    "A command tried to reach another tenant's rows; tenant.wall has the command",
  ),
  counted(
    "lossy-drains",
    "keelson.drains",
    { "keelson.outcome": "lossy" },
    "anything",
    "A process ended before it closed all its resources; shutdown.completed and shutdown.close_failed list them",
  ),
  {
    name: "stale-config",
    metric: "keelson.config.reads",
    labels: { "keelson.outcome": "stale" },
    statistic: "Sum",
    threshold: 0,
    minutes: lasting,
    of: "config",
    says: "Configuration is older than allowed because the store fails; config.stale has the reason",
  },
]);
