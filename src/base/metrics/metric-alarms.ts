import type { MetricName } from "./metric-list.ts";
import type { RunbookPage } from "./runbook.ts";

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
  /** One sentence, with its full stop. */
  readonly says: string;
  readonly page: RunbookPage;
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
  page: RunbookPage,
): MetricAlarm => ({
  name,
  metric,
  labels,
  statistic: "Sum",
  threshold: 0,
  minutes: once,
  of,
  says,
  page,
});

const givenUp = (
  kind: string,
  of: AlarmSubject,
  says: string,
  page: RunbookPage = "dead-letters",
) => counted(`given-up-${kind}`, "keelson.dead_letters", { "keelson.kind": kind }, of, says, page);

export const metricAlarms: readonly MetricAlarm[] = Object.freeze([
  {
    name: "outbox-age",
    metric: "keelson.outbox.age",
    labels: {},
    statistic: "Maximum",
    threshold: 300,
    minutes: lasting,
    of: "outbox",
    says: "Events or jobs have been waiting in the outbox for more than five minutes.",
    page: "late-events",
  },
  givenUp(
    "event",
    "events",
    "An event was given up, so at least one consumer has not processed it.",
  ),
  givenUp("job", "jobs", "A job was given up, so its work is not done."),
  givenUp("delivery", "jobs", "A delivery was given up, so its receiver did not get it."),
  givenUp(
    "schedule",
    "schedules",
    "A schedule failed on every attempt and waits for its next time.",
    "schedule-gave-up",
  ),
  counted(
    "unknown-claims",
    "keelson.claims",
    { "keelson.outcome": "unknown" },
    "anything",
    "It is not known whether a write or a message was processed.",
    "unknown-commit",
  ),
  counted(
    "unknown-steps",
    "keelson.steps",
    { "keelson.outcome": "unknown" },
    "anything",
    "The outcome of a step, such as a payment, is unknown, and an operator must resolve it.",
    "stuck-step",
  ),
  counted(
    "walls-hit",
    "keelson.wall.hits",
    {},
    "tenants",
    "Code tried to reach another tenant's rows, and keelson refused the command.",
    "tenant-wall",
  ),
  counted(
    "lossy-drains",
    "keelson.drains",
    { "keelson.outcome": "lossy" },
    "anything",
    "A process ended before its work was finished or its resources were closed.",
    "lossy-shutdown",
  ),
  {
    name: "stale-config",
    metric: "keelson.config.reads",
    labels: { "keelson.outcome": "stale" },
    statistic: "Sum",
    threshold: 0,
    minutes: lasting,
    of: "config",
    says: "Servers use old configuration because they cannot read the configuration table.",
    page: "configuration-unavailable",
  },
]);
