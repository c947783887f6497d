import type { BootProblem } from "../../base/errors/boot.ts";
import {
  isEventType,
  type RawOptions,
  type Report,
  unknownOptions,
} from "../../base/errors/declared.ts";
import { quoted } from "../../base/errors/quoted.ts";
import type { Awaitable } from "../handlers/handler.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import { cronProblem } from "./cron.ts";

/** Options of a schedule. */
export interface ScheduleOptions {
  /**
   * Fire times as five fields: minute, hour, day of the month, month, day of the week, such as
   * `0 3 * * MON-FRI`. Each field is a number, a range, `*` or a list of these. `*` and ranges can
   * have a step.
   */
  readonly cron: string;
  /** IANA time zone of `cron`. Default `UTC`. */
  readonly timeZone?: string;
  /**
   * Handling of missed fire times, for example after an outage. `once` runs once as soon as
   * possible, regardless of how many times were missed. `skip` waits for the next time if the fire
   * is more than two minutes late. Default `once`.
   */
  readonly missed?: "once" | "skip";
  /**
   * Runs as the system, without a tenant. Its commit happens once. Other effects can happen again
   * after a crash.
   */
  readonly handler: (ctx: PipelineContext, fire: ScheduleFire) => Awaitable<unknown>;
}

/** One fire of a schedule. */
export interface ScheduleFire {
  /** Time at which the schedule was due. The same in each attempt. */
  readonly at: Date;
}

export interface ScheduleDeclaration {
  readonly feature: string;
  /** Full name: `<feature>.<entity>.<operation>`. */
  readonly name: string;
  readonly cron: string;
  readonly timeZone: string;
  readonly missed: "once" | "skip";
  readonly run: (ctx: PipelineContext, fire: ScheduleFire) => unknown;
}

export function schedule(
  feature: string,
  name: string,
  options: RawOptions,
  report: Report,
): ScheduleDeclaration {
  const key = `${feature}.${typeof name === "string" ? name : quoted(name)}`;
  const problem = (rule: string, message: string, fix: string) =>
    report({ key, rule, message, fix });
  unknownOptions(key, options, ["cron", "timeZone", "missed", "handler"], report);
  const { cron, timeZone = "UTC", missed = "once", handler } = options ?? {};
  if (typeof name !== "string" || !isEventType(name)) {
    const message = `name ${quoted(name)} is not <entity>.<operation>`;
    problem("schedule-name", message, 'use two kebab-case words, for example "report.nightly"');
  }
  const wrong = cronProblem(cron);
  if (wrong !== undefined)
    problem(
      "schedule-cron",
      `\`cron\` is ${quoted(cron)}: ${wrong}`,
      'for example "0 3 * * MON-FRI"',
    );
  // An offset such as +02:00 ignores daylight saving time.
  if (typeof timeZone !== "string" || !/^[A-Za-z][A-Za-z0-9_+/-]{0,99}$/.test(timeZone)) {
    const fix = 'use an IANA name, for example "Europe/Berlin"';
    problem(
      "schedule-time-zone",
      `\`timeZone\` is ${quoted(timeZone)}, which is no name of a time zone`,
      fix,
    );
  }
  if (missed !== "once" && missed !== "skip") {
    problem(
      "schedule-missed",
      `\`missed\` is ${quoted(missed)}`,
      'use "once", to make up for what was missed, or "skip"',
    );
  }
  if (typeof handler !== "function")
    problem("handler", "`handler` is not a function", "pass async (ctx) => ...");
  return {
    feature,
    name: key,
    cron: String(cron),
    timeZone: String(timeZone),
    missed: missed === "skip" ? "skip" : "once",
    run: handler as ScheduleDeclaration["run"], // safe: another type is already reported, and a server with problems is never built
  };
}

/**
 * Reports schedules in time zones that Node does not know. Too slow for a cold start: `Intl` takes
 * tens of milliseconds.
 */
export function timeZoneProblems(schedules: Iterable<ScheduleDeclaration>): BootProblem[] {
  return [...schedules]
    .filter(({ timeZone }) => timeZone !== "UTC" && !isTimeZone(timeZone))
    .map(({ feature, name, timeZone }) => ({
      feature,
      key: name,
      rule: "schedule-time-zone",
      message: `this Node knows no time zone ${quoted(timeZone)}`,
      fix: 'use an IANA name, for example "Europe/Berlin"',
    }));
}

function isTimeZone(timeZone: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone }) !== undefined;
  } catch {
    return false;
  }
}
