import { expect, test } from "vitest";
import {
  graceMs,
  maxAttempts,
  retryOf,
  type ScheduleRecord,
  type ScheduleStep,
  scheduleStep,
} from "./schedule-step.ts";

const minute = 60_000;
const hour = 60 * minute;

test.each<[string, ScheduleRecord, "once" | "skip", number | undefined, ScheduleStep]>([
  ["nothing fires that never does", { lastMs: 0 }, "once", undefined, { kind: "none" }],
  ["what has fired does not fire again", { lastMs: hour }, "once", hour, { kind: "none" }],
  [
    "what another clock has let fire does not fire again",
    { lastMs: hour + 1 },
    "once",
    hour,
    { kind: "none" },
  ],
  ["what is due fires", { lastMs: 0 }, "once", 2 * hour, { kind: "fire", atMs: 2 * hour }],
  [
    "what is due fires on time",
    { lastMs: 0 },
    "skip",
    2 * hour - graceMs,
    { kind: "fire", atMs: 2 * hour - graceMs },
  ],
  ["what was missed fires once", { lastMs: 0 }, "once", hour, { kind: "fire", atMs: hour }],
  [
    "what was missed passes",
    { lastMs: 0 },
    "skip",
    2 * hour - graceMs - 1,
    { kind: "pass", atMs: 2 * hour - graceMs - 1 },
  ],
  [
    "what was begun is begun again, before what came later",
    { lastMs: 0, begun: { atMs: minute, attempts: 1, retryMs: 2 * hour } },
    "skip",
    2 * hour,
    { kind: "fire", atMs: minute },
  ],
  [
    "what has failed waits",
    { lastMs: 0, begun: { atMs: minute, attempts: 1, retryMs: 2 * hour + 1 } },
    "once",
    2 * hour,
    { kind: "wait", untilMs: 2 * hour + 1 },
  ],
])("%s", (_title, record, missed, last, step) => {
  expect(scheduleStep(record, { nowMs: 2 * hour, missed, lastFire: () => last })).toEqual(step);
});

test("retries a failed fire later each time, with five attempts in total", () => {
  const attempts = [1, 2, 3, 4, 5, 6].map((attempt) => retryOf(attempt, 10));
  expect(attempts).toEqual([1_010, 5_010, 20_010, 60_010, undefined, undefined]);
  expect(maxAttempts).toBe(5);
});
