import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runs } from "../../../test/support/runs.ts";
import { cronProblem } from "./cron-expression.ts";
import { fireTimes, forCroner } from "./fire-times.ts";

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

const clocks = new Map<string, (atMs: number) => number>();

/** What the clocks of a zone show, as the time in UTC that looks the same. Each time is formatted once: models ask again and again. */
function wallClock(timeZone: string): (atMs: number) => number {
  const known = clocks.get(timeZone);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat("en-US", {
    ...{
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
    },
  });
  const shown = new Map<number, number>();
  const clock = (atMs: number) => {
    const found = shown.get(atMs);
    if (found !== undefined) return found;
    const parts = Object.fromEntries(
      format.formatToParts(atMs).map(({ type, value }) => [type, Number(value)]),
    );
    const { year = 0, month = 0, day = 0, hour = 0, minute = 0 } = parts;
    const wallMs = Date.UTC(year, month - 1, day, hour, minute);
    shown.set(atMs, wallMs);
    return wallMs;
  };
  clocks.set(timeZone, clock);
  return clock;
}

/** When the clocks of a zone change from 2026 on, until 2028. */
function changesOf(timeZone: string): number[] {
  const shown = wallClock(timeZone);
  const offset = (atMs: number) => shown(atMs) - atMs;
  const found: number[] = [];
  for (let atMs = Date.UTC(2026, 0, 1); atMs < Date.UTC(2028, 0, 1); atMs += hour) {
    if (offset(atMs) !== offset(atMs + hour)) found.push(atMs + hour);
  }
  return found;
}

const names = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

function matches(field: string, number: number): boolean {
  return field.split(",").some((part) => {
    const [range = "", step = "1"] = part.split("/");
    const [from = "", to = from] =
      range === "*" ? ["0", "99"] : range.split("-").map((end) => numberOf(end));
    return (
      number >= Number(from) && number <= Number(to) && (number - Number(from)) % Number(step) === 0
    );
  });
}

function numberOf(text: string): string {
  return names.includes(text) ? String(names.indexOf(text)) : text;
}

/** Looks at every minute, forwards: a model of the table in `fireTimes`. */
function bruteForce(cron: string, timeZone: string, fromMs: number, toMs: number): number[] {
  const [minutes = "", hours = "", , , weekday = ""] = cron.split(" ");
  const shown = wallClock(timeZone);
  const fires = (wallMs: number) => {
    const wall = new Date(wallMs);
    return (
      matches(minutes, wall.getUTCMinutes()) &&
      matches(hours, wall.getUTCHours()) &&
      matches(weekday, wall.getUTCDay())
    );
  };
  const isRealTime =
    hours.includes("*") || Array.from({ length: 24 }).every((_, one) => matches(hours, one));
  const found = new Set<number>();
  let latest = shown(fromMs - day);
  for (let atMs = fromMs - day; atMs < toMs; atMs += minute) {
    const wall = shown(atMs);
    if (isRealTime) {
      if (fires(wall)) found.add(atMs);
      continue;
    }
    // All that the clock shows for the first time or has skipped since.
    for (let skipped = latest + minute; skipped <= wall; skipped += minute)
      if (fires(skipped)) found.add(atMs);
    latest = Math.max(latest, wall);
  }
  return [...found].filter((atMs) => atMs >= fromMs);
}

function forwards(cron: string, timeZone: string, fromMs: number, toMs: number): number[] {
  const { next } = fireTimes(cron, timeZone);
  const found: number[] = [];
  for (let atMs = next(fromMs - 1); atMs < toMs; atMs = next(atMs)) found.push(atMs);
  return found;
}

function backwards(cron: string, timeZone: string, fromMs: number, toMs: number): number[] {
  const { last } = fireTimes(cron, timeZone);
  const found: number[] = [];
  for (let atMs = last(toMs - 1); atMs !== undefined && atMs >= fromMs; atMs = last(atMs - 1))
    found.unshift(atMs);
  return found;
}

/** The times around a change of the clocks, in three hours before and after it at night, and some more. */
const around = (changeMs: number) => [changeMs - 5 * hour, changeMs + 5 * hour] as const;

const zones = ["Europe/Paris", "America/New_York", "Australia/Lord_Howe", "America/Santiago"];
const number = (end: number) => fc.integer({ min: 0, max: end });
const field = (end: number) => {
  const range = fc
    .tuple(number(end), number(end))
    .map((ends) => ends.sort((one, other) => one - other).join("-"));
  const part = fc.oneof(number(end).map(String), range, fc.constant("*"));
  const stepped = fc
    .oneof(range, fc.constant("*"))
    .chain((base) => fc.integer({ min: 1, max: end }).map((step) => `${base}/${step}`));
  return fc
    .array(fc.oneof({ weight: 3, arbitrary: part }, stepped), { minLength: 1, maxLength: 3 })
    .map((parts) => parts.join(","));
};
// Most clocks change at night.
const hours = fc.oneof({ weight: 3, arbitrary: number(3).map(String) }, field(23));
const expression = fc
  .tuple(field(59), hours, fc.constantFrom("*", "*", "SUN", "1-6"))
  .map(([minutes, hours, weekday]) => `${minutes} ${hours} * * ${weekday}`);

describe.each(zones)("in %s", (timeZone) => {
  const changes = changesOf(timeZone);

  test("the clocks change twice a year", () => {
    expect(changes).toHaveLength(4);
  });

  test("every expression fires at its times, at each clock change, forwards and backwards", () => {
    fc.assert(
      fc.property(expression, fc.constantFrom(...changes), (cron, changeMs) => {
        expect(cronProblem(cron)).toBeUndefined();
        const [fromMs, toMs] = around(changeMs);
        const wanted = bruteForce(cron, timeZone, fromMs, toMs);
        expect(forwards(cron, timeZone, fromMs, toMs)).toEqual(wanted);
        if (wanted.length < 100) expect(backwards(cron, timeZone, fromMs, toMs)).toEqual(wanted);
      }),
      { numRuns: runs(125) },
    );
  });
});

const utc = (...[at]: readonly [string]) => Date.parse(at);

test.each([
  [
    "a time that does not exist fires when the clock goes on",
    "30 2 * * *",
    "2026-03-29",
    ["01:00"],
  ],
  ["several of them fire as one", "*/15 2 * * *", "2026-03-29", ["01:00"]],
  ["what is due when it goes on fires with them", "30 2,3 * * *", "2026-03-29", ["01:00", "01:30"]],
  ["a time that exists twice fires the first time", "30 2 * * *", "2026-10-25", ["00:30"]],
  ["so do several", "0,30 2 * * *", "2026-10-25", ["00:00", "00:30"]],
  ["each hour has its fire", "30 * * * *", "2026-10-25", ["00:30", "01:30", "02:30"]],
  [
    "each hour has its fire, also where all are named",
    "30 0-23 * * *",
    "2026-10-25",
    ["00:30", "01:30", "02:30"],
  ],
  ["an hour that does not exist has none", "30 * * * *", "2026-03-29", ["00:30", "01:30", "02:30"]],
])("in Paris, %s: %s on %s", (_title, cron, date, times) => {
  const [fromMs, toMs] = [utc(`${date}T00:00:00Z`), utc(`${date}T03:00:00Z`)];
  expect(forwards(cron, "Europe/Paris", fromMs, toMs)).toEqual(
    times.map((time) => utc(`${date}T${time}:00Z`)),
  );
});

test("a time is the last one from its own millisecond on", () => {
  const { last, next } = fireTimes("0 3 * * *", "UTC");
  const at = utc("2026-11-22T03:00:00Z");
  expect([last(at - 1), last(at), last(at + 999)]).toEqual([at - day, at, at]);
  expect([next(at - 1), next(at)]).toEqual([at, at + day]);
});

test("an impossible date has no times, and leap days are found years apart", () => {
  const never = fireTimes("0 3 31 2 *", "Europe/Paris");
  expect([never.last(0), never.next(0)]).toEqual([undefined, Infinity]);
  const { last, next } = fireTimes("0 3 29 2 *", "UTC");
  expect(last(utc("2026-11-22T03:00:00Z"))).toBe(utc("2024-02-29T03:00:00Z"));
  expect(next(utc("2026-11-22T03:00:00Z"))).toBe(utc("2028-02-29T03:00:00Z"));
});

test("fires on either the day of the month or the day of the week, as cron does", () => {
  const { next } = fireTimes("0 3 1 * MON", "UTC");
  expect(next(utc("2026-11-24T00:00:00Z"))).toBe(utc("2026-11-30T03:00:00Z"));
  expect(next(utc("2026-11-30T04:00:00Z"))).toBe(utc("2026-12-01T03:00:00Z"));
});

test.each([
  ["*/20 2-4/2,3 * * MON", "0,20,40 2,3,4 * * MON"],
  ["5 0-23 1 * *", "5 * 1 * *"],
  ["*/5 */2,3 * * *", "*/5 */2,3 * * *"],
])("writes %s as %s for croner", (cron, written) => {
  expect(forCroner(cron)).toBe(written);
});
