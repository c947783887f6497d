import fc from "fast-check";
import { expect, test } from "vitest";
import { pauseAfter, retryAfterMs } from "./pause.ts";

const nowMs = Date.parse("2026-11-22T10:00:00Z");
const asked = (headers: Record<string, string>) => retryAfterMs(new Headers(headers), nowMs);

test("reads Retry-After as seconds or as a date", () => {
  expect(asked({ "retry-after": "3" })).toBe(3_000);
  expect(asked({ "retry-after": "Sun, 22 Nov 2026 10:00:07 GMT" })).toBe(7_000);
});

test("compares a Retry-After date with the server's own clock when the response has a Date", () => {
  const headers = {
    date: "Sun, 22 Nov 2026 09:00:00 GMT",
    "retry-after": "Sun, 22 Nov 2026 09:00:02 GMT",
  };

  expect(asked(headers)).toBe(2_000);
});

test.each(["", "soon", "-1", "1.5", "0x10", "Sun, 22 Nov 2026 09:00:00 GMT", "yesterday GMT"])(
  "ignores a Retry-After that is past or cannot be read: %j",
  (value) => {
    expect(asked({ "retry-after": value })).toBe(0);
  },
);

test("asks for no pause without Retry-After", () => {
  expect(asked({})).toBe(0);
});

test("pauses double up to ten seconds, are random, and come on top of what the server asks for", () => {
  const longest = [1, 2, 3, 6, 7, 20].map((attempt) => pauseAfter(attempt, 0, () => 1));

  expect(longest).toEqual([250, 500, 1_000, 8_000, 10_000, 10_000]);
  expect(pauseAfter(3, 0, () => 0)).toBe(0);
  expect(pauseAfter(1, 2_000, () => 0.5)).toBe(2_125);
});

test("a pause is never shorter than the server asks, and at most ten seconds longer", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 2_000 }),
      fc.nat(),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (attempt, ms, chance) => {
        const pause = pauseAfter(attempt, ms, () => chance);
        return pause >= ms && pause <= ms + 10_000;
      },
    ),
  );
});
