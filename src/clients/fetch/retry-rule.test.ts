import fc from "fast-check";
import { expect, test } from "vitest";
import { errorCodes } from "../../base/errors/error-codes.ts";
import { isRetried, mayBeRetried, pauseAfter, rateLimitMs, retryAfterMs } from "./retry-rule.ts";

test("retries only keelson's temporary errors", () => {
  const retried = Object.entries(errorCodes).filter(
    ([code, status]) => mayBeRetried(status) && isRetried(status, code, null),
  );

  expect(retried.map(([code]) => code)).toEqual([
    "request_in_progress",
    "too_many_requests",
    "config_unavailable",
    "isolation_unavailable",
    "overloaded",
    "timeout",
  ]);
});

test("never retries an unknown outcome, even with Retry-After", () => {
  expect(isRetried(409, "unknown_outcome", "1")).toBe(false);
});

test.each([
  [429, true],
  [502, true],
  [503, true],
  [504, true],
  [409, false],
])("a gateway's %i, without a code, is retried: %s", (status, retried) => {
  expect(mayBeRetried(status)).toBe(true);
  expect(isRetried(status, undefined, null)).toBe(retried);
});

test.each([200, 304, 400, 401, 403, 404, 408, 412, 422, 500, 501])("a %i is final", (status) => {
  expect(mayBeRetried(status)).toBe(false);
});

test("retries an application's code only with 429 or 503 and a Retry-After", () => {
  expect(isRetried(503, "archive_busy", "30")).toBe(true);
  expect(isRetried(429, "plan_used_up", "30")).toBe(true);
  expect(isRetried(503, "archive_busy", null)).toBe(false);
  expect(isRetried(409, "file_locked", "30")).toBe(false);
  expect(isRetried(502, "provider_failed", "30")).toBe(false);
});

test("treats a keelson code with another status as the application's own", () => {
  expect(isRetried(409, "overloaded", null)).toBe(false);
});

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

test.each([
  ['"a";r=0;t=12', 12_000],
  ['"a";r=0;t=12, "b"; r=0; t=40', 40_000],
  ['"a";r=5;t=12, "b";r=0;t=3', 3_000],
  ['"a;r=0;t=9";r=5;t=12', 0],
  ['"a\\"b,c";t=7;r=0;pk=:YQ==:', 7_000],
  ['"a";r=0', 0],
  ['"a";r=0;t=-1', 0],
  ['"without an end;r=0;t=9', 0],
  ["", 0],
])("waits for the limits in RateLimit that admit nothing: %s", (field, ms) => {
  expect(rateLimitMs(new Headers({ ratelimit: field }))).toBe(ms);
  expect(rateLimitMs(new Headers())).toBe(0);
});
