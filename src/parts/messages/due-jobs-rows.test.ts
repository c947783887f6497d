import fc from "fast-check";
import { expect, test } from "vitest";
import { dueId, dueMsOf, duePlace, dueRow, waitingJob } from "./due-jobs.ts";
import { idOf } from "./envelope.ts";

const nowMs = Date.parse("2026-11-22T12:00:00Z");
const year = 365 * 86_400;

test.each([
  [{ delaySeconds: 0 }, 0],
  [{ delaySeconds: 90 }, 90_000],
  [{ delaySeconds: 0.0011 }, 2],
  [{ delaySeconds: year }, year * 1000],
  [{ at: new Date(nowMs + 5) }, 5],
  [{ at: new Date(nowMs - 5) }, 0],
  [{ at: new Date(0) }, 0],
])("%j is due after %s ms", (later, afterMs) => {
  expect(dueMsOf(later, nowMs)).toBe(nowMs + afterMs);
});

test.each([
  [{ delaySeconds: 1, at: new Date() }, TypeError, "both say when"],
  [{ delaySeconds: -1 }, TypeError, "delaySeconds -1 is not a number from 0"],
  [{ delaySeconds: Number.NaN }, TypeError, "delaySeconds NaN"],
  [{ delaySeconds: "60" as unknown as number }, TypeError, "delaySeconds 60"],
  [{ at: new Date("never") }, TypeError, "`at` is not a valid Date"],
  [{ at: nowMs as unknown as Date }, TypeError, "`at` is not a valid Date"],
  [{ delaySeconds: year + 1 }, RangeError, "more than a year"],
  [{ delaySeconds: Number.POSITIVE_INFINITY }, RangeError, "more than a year"],
  [{ at: new Date(nowMs + year * 1000 + 1) }, RangeError, "more than a year"],
])("refuses %j", (later, type, message) => {
  expect(() => dueMsOf(later, nowMs)).toThrow(
    expect.objectContaining({ name: type.name, message: expect.stringContaining(message) }),
  );
});

const times = fc.integer({ min: 0, max: 253_402_300_799_999 });

test("an ID encodes where its job waits, sorts by time, and is unique", () => {
  fc.assert(
    fc.property(times, times, fc.string(), fc.nat(), (one, other, seed, ordinal) => {
      const [first, second] = [dueId(one, seed, ordinal), dueId(other, seed, ordinal)];
      const places = [duePlace(first), duePlace(second)];
      expect(idOf({ first }, "first")).toBe(first);
      expect(dueId(one, seed, ordinal)).toBe(first);
      expect(dueId(one, seed, ordinal + 1)).not.toBe(first);
      expect(places[0]).toEqual({
        shard: expect.stringMatching(/^due#[0-7]$/),
        sort: `${String(one).padStart(15, "0")}#${first}`,
      });
      if (one < other) expect(String(places[0]?.sort) < String(places[1]?.sort)).toBe(true);
    }),
  );
});

test("an invalid job ID has no place", () => {
  for (const id of [
    "",
    "j1",
    7,
    undefined,
    null,
    {},
    "0193c1f4-8f5e-7000-8000-2b7f6c1f5e0a",
    "0193C1F4-8F5E-8000-8000-2B7F6C1F5E0A",
  ]) {
    expect(duePlace(id)).toBeUndefined();
  }
});

test("a row restores the job text and its queue settings", () => {
  fc.assert(
    fc.property(times, fc.json(), (dueMs, json) => {
      const jobId = dueId(dueMs, "seed");
      const job = {
        jobId,
        name: "a.b.c",
        tenantId: "acme",
        group: "g".repeat(43),
        deduplicationId: "-_".repeat(20),
        text: `{"a":${json}}`,
      };
      const { group, deduplicationId, text } = job;
      expect(waitingJob(dueRow(job))).toEqual({ group, deduplicationId, text });
      expect(dueRow(job)).toMatchObject({
        ...duePlace(jobId),
        eventId: jobId,
        type: "a.b.c",
        tenantId: "acme",
      });
    }),
  );
});

test("refuses an invalid row of a job", () => {
  const row = { shard: "due#1", sort: "1#2", eventId: "2", type: "a.b.c" };
  for (const text of ["", "{}", "a {}", "a b ", " b {}", `${"a".repeat(129)} b {}`])
    expect(waitingJob({ ...row, text })).toBeUndefined();
  expect(waitingJob({ ...row, text: "a b {}", unreadable: {} })).toBeUndefined();
});
