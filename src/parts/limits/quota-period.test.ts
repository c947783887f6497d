import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { quotaPeriod } from "./quota-period.ts";

const at = (text: string) => Date.parse(text);
const iso = (ms: number | undefined) => ms && new Date(ms).toISOString();

describe("a period", () => {
  test.each<["day" | "month" | "forever", string, string, string, string | undefined]>([
    ["forever", "UTC", "2026-11-28T12:00:00Z", "forever", undefined],
    ["day", "UTC", "2026-11-28T00:00:00Z", "2026-11-28", "2026-11-29T00:00:00.000Z"],
    ["day", "UTC", "2026-11-28T23:59:59.999Z", "2026-11-28", "2026-11-29T00:00:00.000Z"],
    ["month", "UTC", "2028-02-29T12:00:00Z", "2028-02", "2028-03-01T00:00:00.000Z"],
    ["month", "UTC", "2026-12-31T12:00:00Z", "2026-12", "2027-01-01T00:00:00.000Z"],
    ["day", "Europe/Berlin", "2026-11-28T23:30:00Z", "2026-11-29", "2026-11-29T23:00:00.000Z"],
    ["month", "Asia/Tokyo", "2026-11-30T15:00:00Z", "2026-12", "2026-12-31T15:00:00.000Z"],
    ["day", "Asia/Kathmandu", "2026-11-28T18:14:59Z", "2026-11-28", "2026-11-28T18:15:00.000Z"],
    ["day", "Pacific/Kiritimati", "2026-11-28T10:00:00Z", "2026-11-29", "2026-11-29T10:00:00.000Z"],
    ["day", "America/St_Johns", "2026-11-28T03:29:59Z", "2026-11-27", "2026-11-28T03:30:00.000Z"],
  ])("%s in %s at %s is %s, until %s", (window, zone, now, id, endsAt) => {
    const period = quotaPeriod(window, zone, at(now));
    expect([period.id, iso(period.endsAtMs)]).toEqual([id, endsAt]);
  });

  test.each<[string, string, string, string, number]>([
    ["23 hours, as clocks go forward", "Europe/Berlin", "2026-03-29T10:00:00Z", "2026-03-29", 23],
    ["25 hours, as clocks go back", "Europe/Berlin", "2026-10-25T10:00:00Z", "2026-10-25", 25],
    [
      "23 hours, and midnight does not exist",
      "Asia/Beirut",
      "2026-03-29T10:00:00Z",
      "2026-03-29",
      23,
    ],
    [
      "25 hours, and midnight exists twice",
      "America/Havana",
      "2026-11-01T12:00:00Z",
      "2026-11-01",
      25,
    ],
    ["24 and a half hours", "Australia/Lord_Howe", "2026-04-05T03:00:00Z", "2026-04-05", 24.5],
  ])("a day has %s", (_, zone, now, id, hours) => {
    const { endsAtMs = 0, ...day } = quotaPeriod("day", zone, at(now));
    expect(day.id).toBe(id);
    const before = quotaPeriod("day", zone, endsAtMs - hours * 3_600_000 - 1);
    expect(before.id < id).toBe(true);
    expect(before.endsAtMs).toBe(endsAtMs - hours * 3_600_000);
  });

  test("a date that a zone skips is no period", () => {
    // Samoa went from 29 to 31 December 2011.
    const last = quotaPeriod("day", "Pacific/Apia", at("2011-12-30T09:00:00Z"));
    expect([last.id, iso(last.endsAtMs)]).toEqual(["2011-12-29", "2011-12-30T10:00:00.000Z"]);
    expect(quotaPeriod("day", "Pacific/Apia", at("2011-12-30T10:00:00Z")).id).toBe("2011-12-31");
  });
});

test("periods of any zone follow one another without gaps or overlaps", () => {
  const zones = [
    "UTC",
    ...Intl.supportedValuesOf("timeZone").filter((_, index) => index % 7 === 0),
  ];
  const times = fc.integer({ min: at("2015-01-01T00:00:00Z"), max: at("2035-01-01T00:00:00Z") });
  fc.assert(
    fc.property(
      fc.constantFrom(...zones),
      fc.constantFrom("day" as const, "month" as const),
      times,
      (zone, window, nowMs) => {
        const { id, endsAtMs = 0 } = quotaPeriod(window, zone, nowMs);
        expect(endsAtMs).toBeGreaterThan(nowMs);
        expect(quotaPeriod(window, zone, endsAtMs - 1)).toEqual({ id, endsAtMs });
        const next = quotaPeriod(window, zone, endsAtMs);
        expect(next.id > id).toBe(true);
      },
    ),
    { numRuns: 300 },
  );
});
