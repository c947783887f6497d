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
    says: "Events wait longer than five minutes: event.dispatch_failed says why",
  },
  givenUp(
    "event",
    "events",
    "An event is given up: queue.dead_lettered or event.set_aside says which, and why",
  ),
  givenUp(
    "job",
    "jobs",
    "A job is given up: queue.dead_lettered or job.set_aside says which, and why",
  ),
  givenUp("delivery", "jobs", "A delivery is given up: queue.dead_lettered says which, and why"),
  givenUp("schedule", "schedules", "A schedule has failed too often: schedule.gave_up says which"),
  counted(
    "unknown-claims",
    "keelson.claims",
    { "keelson.outcome": "unknown" },
    "anything",
    "Nobody knows whether something was done: commit_uncertain, completion_failed or a timeout says what",
  ),
  counted(
    "unknown-steps",
    "keelson.steps",
    { "keelson.outcome": "unknown" },
    "anything",
    "A step waits for somebody to say how it ended: step.unknown says which, keelson steps resolves it",
  ),
  counted(
    "walls-hit",
    "keelson.wall.hits",
    {},
    "tenants",
    "A command would have reached another tenant's rows: tenant.wall says which",
  ),
  counted(
    "lossy-drains",
    "keelson.drains",
    { "keelson.outcome": "lossy" },
    "anything",
    "A process ended before everything was closed: shutdown.completed and shutdown.close_failed say what",
  ),
  {
    name: "stale-config",
    metric: "keelson.config.reads",
    labels: { "keelson.outcome": "stale" },
    statistic: "Sum",
    threshold: 0,
    minutes: lasting,
    of: "config",
    says: "Configuration is older than it may be, since the store fails: config.stale says why",
  },
]);
