import { expect, test } from "vitest";
import { createLongPolls } from "./long-polls.ts";

const hour = 3_600_000;
const never = new AbortController().signal;

test("everybody who waits for a queue looks again when it is told of, and nobody else", async () => {
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

test("those who wait for a queue whose polls are ended do not look again, and nobody else hears of it", async () => {
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

test("nobody waits longer than asked for, or for somebody who has gone", async () => {
  const polls = createLongPolls();
  await polls.wait("a", 1, never);
  await polls.wait("a", hour, AbortSignal.abort());
});
