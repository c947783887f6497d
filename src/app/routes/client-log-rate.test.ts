import { expect, test } from "vitest";
import { createRateLimit } from "./client-log.ts";

function limited() {
  let nowMs = 1_000_000;
  const limit = createRateLimit({ burst: 10, perSecond: 2 }, { now: () => nowMs });
  return { take: limit, advance: (ms: number) => (nowMs += ms) };
}

test("takes a burst at once, and delays the excess until enough tokens are back", () => {
  const { take, advance } = limited();
  expect([take("ann", 4), take("ann", 6), take("ann", 3)]).toEqual([0, 0, 2]);
  advance(1_000);
  expect([take("ann", 3), take("ann", 2), take("ann", 1)]).toEqual([1, 0, 1]);
  advance(3_600_000);
  expect([take("ann", 10), take("ann", 1)]).toEqual([0, 1]);
});

test("keys do not use each other's tokens, and a clock that goes back adds none", () => {
  const { take, advance } = limited();
  expect([take("ann", 10), take("bob", 10)]).toEqual([0, 0]);
  advance(-60_000);
  expect(take("ann", 1)).toBe(1);
});

test("bounds its memory: the key idle longest starts over", () => {
  const { take } = limited();
  take("first", 10);
  for (let n = 0; n < 10_000; n++) take(`other-${n}`, 1);
  expect(take("first", 10)).toBe(0);
  expect(take("other-9999", 10)).toBeGreaterThan(0);
});
