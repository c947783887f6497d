import type { BootProblem } from "../../base/errors/boot.ts";
import type { Report } from "../../base/errors/option-table.ts";
import { quoted } from "../../base/errors/quoted.ts";
import { isZoneName, knownZone } from "../../base/process/time-zone.ts";
import type { Awaitable } from "../handlers/handler.ts";
import type { JobDeclaration } from "../handlers/message-handlers.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import {
  aFunction,
  knownOptions,
  named,
  problemsOf,
  type Requirements,
  required,
  requireOptions,
  requireValue,
  twoWords,
} from "../handlers/requirements.ts";
import { cronProblem } from "./cron-expression.ts";

/** Options of a schedule. */
export interface ScheduleOptions {
  /**
   * Five fields: minute, hour, day of the month, month and day of the week, for example
   * `0 3 * * MON-FRI`. Each field is a number, a range, `*` or a list of these; `*` and ranges can
   * have a step.
   */
  readonly cron: string;
  /** IANA time zone of `cron`, not with `for: "tenants"`. Default `UTC`. */
  readonly timeZone?: string;
  /**
   * `tenants` runs the handler as each active tenant of the registry (`tenants: true`), at each time
   * that is due in the tenant's own time zone. Default: one run, without a tenant.
   */
  readonly for?: "tenants";
  /**
   * Handling of runs missed in an outage: `once` makes up for all missed runs in one run as soon as
   * possible, and `skip` skips a run that would start more than two minutes late. Default `once`.
   */
  readonly missed?: "once" | "skip";
  /**
   * Handles a scheduled run as the system, without a tenant unless `for` is set. The commit of `ctx`
   * happens once; other effects can repeat after a crash.
   */
  readonly handler: (ctx: PipelineContext, fire: ScheduleFire) => Awaitable<unknown>;
}

/** One scheduled run. */
export interface ScheduleFire {
  /** Time at which the run was due, the same in each attempt. */
  readonly at: Date;
}

export interface ScheduleDeclaration {
  readonly feature: string;
  /** Full name, `<feature>.<entity>.<operation>`. */
  readonly name: string;
  readonly cron: string;
  readonly timeZone: string;
  readonly missed: "once" | "skip";
  /** If it is set, a job of the same name runs for each tenant, and `timeZone` has no effect. */
  readonly for?: "tenants" | undefined;
  readonly run: (ctx: PipelineContext, fire: ScheduleFire) => unknown;
}

const timeZoneFix = 'use an IANA name, for example "Europe/Berlin"';

const requirements: Requirements = {
  cron: required({
    accepts: (cron) => cronProblem(cron) === undefined,
    rule: "schedule-cron",
    wrong: (cron) => `is ${quoted(cron)}: ${cronProblem(cron)}`,
    fix: 'for example "0 3 * * MON-FRI"',
  }),
  timeZone: {
    accepts: isZoneName,
    rule: "schedule-time-zone",
    wrong: (zone: unknown) => `is ${quoted(zone)}, which is not the name of a time zone`,
    fix: timeZoneFix,
  },
  missed: {
    accepts: (missed: unknown) => missed === "once" || missed === "skip",
    rule: "schedule-missed",
    fix: 'use "once", to make up for missed runs in one run, or "skip"',
  },
  for: {
    accepts: (whom: unknown) => whom === "tenants",
    rule: "schedule-for",
    fix: 'use "tenants"',
  },
  handler: required(aFunction("pass async (ctx) => ...")),
};

export function schedule(
  feature: string,
  name: string,
  options: unknown,
  report: Report,
): ScheduleDeclaration {
  const key = `${feature}.${named(name)}`;
  const problem = problemsOf(key, report);
  const given = knownOptions(key, options, Object.keys(requirements), report);
  requireValue("name", name, twoWords("schedule-name", "operation", "report.nightly"), problem);
  requireOptions(given, requirements, problem);
  // Safe cast: wrong types are reported, and a server with problems is never built.
  const {
    cron,
    timeZone = "UTC",
    missed = "once",
    for: whom,
    handler: run,
  } = given as unknown as ScheduleOptions;
  if (whom !== undefined && given["timeZone"] !== undefined)
    problem("schedule-for", "`timeZone` has no effect with `for`", "leave one out");
  return { feature, name: key, cron, timeZone: String(timeZone), missed, for: whom, run };
}

/** The job that runs a schedule for tenants as one of them. Empty for other schedules. */
export function tenantJobs({ feature, name, run, ...rest }: ScheduleDeclaration): JobDeclaration[] {
  if (!rest.for) return [];
  const timeOf = (payload: unknown) => new Date((payload as { readonly at: string }).at); // safe: a job's payload is an object
  const input = () => ({
    type: "object",
    properties: { at: { type: "string" } },
    required: ["at"],
  });
  const standard = {
    version: 1,
    vendor: "keelson",
    validate: (value: unknown) =>
      +timeOf(value) ? { value } : { issues: [{ message: "no time" }] },
    jsonSchema: { input },
  } as const;
  return [
    {
      feature,
      name,
      dedupScope: "tenant",
      input: { "~standard": standard },
      run: (ctx, payload) => run(ctx, { at: timeOf(payload) }),
    },
  ];
}

/** @param tenants - the server's option. */
export function tenantProblems(
  schedules: Iterable<ScheduleDeclaration>,
  tenants: unknown,
): BootProblem[] {
  return [...schedules]
    .filter((one) => one.for && !tenants)
    .map(({ feature, name: key }) => ({
      feature,
      key,
      rule: "schedule-tenants",
      message: "the server registers no tenants",
      fix: "pass tenants: true to buildServer",
    }));
}

/** Too slow for a cold start: `Intl` takes tens of milliseconds. */
export function timeZoneProblems(schedules: Iterable<ScheduleDeclaration>): BootProblem[] {
  return [...schedules]
    .filter(({ timeZone }) => timeZone !== "UTC" && knownZone(timeZone) === undefined)
    .map(({ feature, name, timeZone }) => ({
      feature,
      key: name,
      rule: "schedule-time-zone",
      message: `this Node does not know the time zone ${quoted(timeZone)}`,
      fix: timeZoneFix,
    }));
}
