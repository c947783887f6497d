import { afterEach, expect, test, vi } from "vitest";
import { z } from "zod";
import type { BootError } from "../../base/errors/boot.ts";
import { defineFeature, type Feature } from "../features/feature.ts";
import type { FeatureBuilder } from "../features/feature-builder.ts";
import { buildServer } from "../server/server.ts";

afterEach(() => vi.unstubAllEnvs());

const fine = { cron: "0 3 * * *", timeZone: "Europe/Berlin", handler: async () => undefined };

function problemsOf(...features: readonly Feature[]): string[] {
  try {
    buildServer({ features });
  } catch (error) {
    // Safe: buildServer throws nothing else.
    return (error as BootError).problems.map(
      ({ key, rule, message }) => `${key}: ${rule}: ${message}`,
    );
  }
  return [];
}

/** What a server says of a schedule that is declared so, as plain JavaScript might. */
const declared = (name: unknown, options: unknown) =>
  problemsOf(defineFeature("reports", (r) => void r.schedule(name as string, options as never)));

test("schedules are declared, and the registry lists them", () => {
  const handler = async () => undefined;
  const { registry } = buildServer({
    features: [
      defineFeature("reports", (r) => {
        r.schedule("report.nightly", {
          cron: "0 3 * * MON-FRI",
          timeZone: "Europe/Berlin",
          missed: "skip",
          handler,
        });
        r.schedule("report.hourly", { cron: "0 * * * *", handler });
      }),
    ],
  });
  expect([...registry.schedules.values()]).toEqual([
    {
      feature: "reports",
      name: "reports.report.nightly",
      cron: "0 3 * * MON-FRI",
      timeZone: "Europe/Berlin",
      missed: "skip",
      run: handler,
    },
    {
      feature: "reports",
      name: "reports.report.hourly",
      cron: "0 * * * *",
      timeZone: "UTC",
      missed: "once",
      run: handler,
    },
  ]);
});

test.each<[unknown, unknown, string]>([
  ["nightly", fine, 'reports.nightly: schedule-name: name "nightly" is not <entity>.<operation>'],
  [7, fine, "reports.7: schedule-name: name 7 is not <entity>.<operation>"],
  [
    "a.b",
    { ...fine, cron: "0 3 * *" },
    'reports.a.b: schedule-cron: `cron` is "0 3 * *": it has 4 fields',
  ],
  [
    "a.b",
    { ...fine, timeZone: "+02:00" },
    'reports.a.b: schedule-time-zone: `timeZone` is "+02:00", which is not the name',
  ],
  [
    "a.b",
    { ...fine, timeZone: 2 },
    "reports.a.b: schedule-time-zone: `timeZone` is 2, which is not the name of a time zone",
  ],
  [
    "a.b",
    { ...fine, timeZone: "Europe/Berlim" },
    'schedule-time-zone: this Node does not know the time zone "Europe/Berlim"',
  ],
  ["a.b", { ...fine, missed: "twice" }, 'reports.a.b: schedule-missed: `missed` is "twice"'],
  ["a.b", { ...fine, for: "users" }, 'reports.a.b: schedule-for: `for` is "users"'],
  [
    "a.b",
    { ...fine, for: "tenants" },
    "reports.a.b: schedule-for: `timeZone` has no effect with `for`",
  ],
  [
    "a.b",
    { ...fine, for: "tenants" },
    "reports.a.b: schedule-tenants: the server registers no tenants",
  ],
  ["a.b", { ...fine, handler: "run" }, "reports.a.b: handler: `handler` is not a function"],
  ["a.b", { ...fine, every: 5 }, 'reports.a.b: unknown-option: unknown option "every"'],
])("a schedule %j of %j is refused", (name, options, problem) => {
  const problems = declared(name, options);
  expect(
    problems.some((one) => one.includes(problem)),
    problems.join("\n"),
  ).toBe(true);
});

test("a schedule without options reports all that is missing", () => {
  expect(declared("a.b", undefined).map((problem) => problem.split(": ")[1])).toEqual([
    "schedule-cron",
    "handler",
  ]);
});

test("refuses a name that another declaration has", () => {
  const twice = (declare: (r: FeatureBuilder<"reports">) => void) =>
    problemsOf(
      defineFeature("reports", (r) => {
        r.schedule("report.nightly", fine);
        declare(r);
      }),
    );
  expect(twice((r) => r.schedule("report.nightly", fine))).toEqual([
    "reports.report.nightly: duplicate-schedule: this schedule is declared twice",
  ]);
  const taken =
    "reports.report.nightly: duplicate-name: a handler, consumer, job, receiver or schedule of this name is declared as well";
  expect(twice((r) => r.query("report.nightly", { handler: async () => 1 }))).toEqual([taken]);
  expect(
    twice((r) => r.job("report.nightly", { input: z.object({}), handler: async () => 1 })),
  ).toContain(taken);
});

test("a schedule for tenants has a job of its name, which no other declaration has", () => {
  const handler = async () => undefined;
  const problemsWith = (declare: (r: FeatureBuilder<"reports">) => void) => {
    const feature = defineFeature("reports", (r) => {
      r.schedule("report.nightly", { cron: "0 3 * * *", for: "tenants", handler });
      declare(r);
    });
    try {
      return [...buildServer({ features: [feature], tenants: true }).registry.jobs.keys()];
    } catch (error) {
      return (error as BootError).problems.map(({ rule }) => rule); // safe: buildServer throws nothing else
    }
  };
  expect(problemsWith(() => undefined)).toEqual(["reports.report.nightly"]);
  expect(problemsWith((r) => r.job("report.nightly", { input: z.object({}), handler }))).toEqual([
    "duplicate-job",
  ]);
  expect(new Set(problemsWith((r) => r.query("report.nightly", { handler })))).toEqual(
    new Set(["duplicate-name"]),
  );
});

test("a function does not load time zones at its start, but still reports the other problems", () => {
  vi.stubEnv("AWS_LAMBDA_FUNCTION_NAME", "f");
  const format = vi.spyOn(Intl, "DateTimeFormat");
  expect(declared("a.b", { ...fine, timeZone: "Europe/Berlim" })).toEqual([]);
  expect(declared("a.b", { ...fine, cron: "" })).toHaveLength(1);
  expect(format).not.toHaveBeenCalled();
  format.mockRestore();
});
