import { expect, test } from "vitest";
import { arrival, dueFrom, joined, type Line, left, type Place } from "./line.ts";

const nowMs = 1_700_000_000_000;

/** A line in which jobs have waited, in the order of their positions. */
function lineOf(count: number): { line: Line; places: Place[] } {
  let { line } = arrival();
  const places: Place[] = [];
  for (let n = 0; n < count; n += 1) {
    const next = joined(line, undefined, nowMs);
    line = next.line;
    places.push(next.place);
  }
  return { line, places };
}

test("while nothing waits, every job may run", () => {
  expect(arrival().mayRun).toBe(true);
  expect(arrival(undefined, { position: 7, turn: 9 }).mayRun).toBe(true);
});

test("a new job waits behind those that wait, and each runs in the order in which they came", () => {
  const { line, places } = lineOf(2);
  expect(places).toEqual([
    { position: 1, turn: 1 },
    { position: 2, turn: 2 },
  ]);
  // The first one comes, and waits again.
  const again = joined(line, places[0], nowMs);
  const come = [undefined, again.place, places[1]];
  expect(come.map((place) => arrival(again.line, place).mayRun)).toEqual([false, true, false]);
  const second = left(again.line, again.place);
  expect([undefined, ...places].map((place) => arrival(second, place).mayRun)).toEqual([
    false,
    true,
    true,
  ]);
  expect(arrival(left(second, places[1] as Place)).mayRun).toBe(true);
});

test("a job that waits again keeps its position, and is due after all others", () => {
  const { line, places } = lineOf(3);
  const again = joined(line, places[0], nowMs + 5_000);
  expect(again.place).toEqual({ position: 1, turn: 4 });
  expect(again.line).toEqual({ first: 1, next: 4, firstBy: 4, turn: 4, dueMs: nowMs + 5_000 });
  const behind = joined(again.line, places[1], nowMs + 1_000);
  expect(behind.place).toEqual({ position: 2, turn: 5 });
  expect(behind.line).toMatchObject({ first: 1, firstBy: 4, dueMs: nowMs + 5_001 });
});

test("if the first job does not come back in its turn, the next one is the first", () => {
  const { line, places } = lineOf(3);
  // The first one leaves. The second one must come by turn 3, but the third one comes again.
  const second = left(line, places[0] as Place);
  const third = joined(second, places[2], nowMs);
  expect(arrival(second, places[2])).toEqual({ line: second, mayRun: false });
  const found = arrival(third.line, third.place);
  expect(found).toMatchObject({ mayRun: true, line: { first: 3, firstBy: 4 } });
  // The second one may still come, and then waits for nothing.
  expect(arrival(found.line, places[1]).mayRun).toBe(true);
  expect(left(found.line, places[1] as Place)).toBe(found.line);
  expect(left(third.line, third.place)).toMatchObject({ first: 4, next: 4 });
});

test("in a line that has been empty, a job has a new position", () => {
  const { line, places } = lineOf(1);
  const empty = left(line, places[0] as Place);
  expect(joined(empty, places[0], nowMs).place).toEqual({ position: 2, turn: 2 });
});

test("a job whose line is missing leaves an empty line behind", () => {
  const { line } = arrival(undefined, { position: 7, turn: 9 });
  const empty = left(line, { position: 7, turn: 9 });
  expect(empty).toMatchObject({ first: 8, next: 8 });
  expect(arrival(empty).mayRun).toBe(true);
  expect(joined(empty, undefined, nowMs).place.position).toBe(8);
});

test("a job waits long enough that no clock sees it as due before it is written", () => {
  expect(dueFrom(true, nowMs, 750)).toBe(nowMs + 3_000);
  expect(dueFrom(true, nowMs, 5_000)).toBe(nowMs + 5_000);
  expect(dueFrom(false, nowMs, 5_000)).toBe(nowMs + 3_000);
});
