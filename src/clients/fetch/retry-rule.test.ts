import { expect, test } from "vitest";
import { errorCodes } from "../../base/errors/errors.ts";
import { isRetried, mayBeRetried } from "./retry-rule.ts";

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
