import { expect, test } from "vitest";
import { createLongPolls, endPolls } from "./long-polls.ts";

const hour = 3_600_000;
const never = new AbortController().signal;

test("waking a queue wakes all of its waiters, and no others", async () => {
  const polls = createLongPolls();
  const outcomes: string[] = [];
  const leave = new AbortController();
  const waits = [
    polls.wait("a", hour, never).then(() => outcomes.push("first")),
    polls.wait("a", hour, never).then(() => outcomes.push("second")),
    polls.wait("b", hour, leave.signal).then(() => outcomes.push("other")),
  ];
  polls.wake("a");
  polls.wake("nobody waits for it");
  await Promise.all(waits.slice(0, 2));
  expect(outcomes).toEqual(["first", "second"]);
  leave.abort();
  await Promise.all(waits);
  expect(outcomes).toEqual(["first", "second", "other"]);
});

test("ending the polls of a queue ends all of its waits, and no others", async () => {
  const polls = createLongPolls();
  const waits = [
    polls.wait("a", hour, never),
    polls.wait("a", hour, never),
    polls.wait("b", hour, never),
  ];
  polls.end("a");
  polls.wake("b");
  expect(await Promise.all(waits)).toEqual([true, true, false]);
  expect(await polls.wait("a", 1, never)).toBe(false);
});

test("a wait ends when its time is over or its caller has gone", async () => {
  const polls = createLongPolls();
  await polls.wait("a", 1, never);
  await polls.wait("a", hour, AbortSignal.abort());
});

test("does not fail when the stack has already ended", async () => {
  expect(await endPolls("http://127.0.0.1:1/000000000000/jobs")).toBeUndefined();
});
