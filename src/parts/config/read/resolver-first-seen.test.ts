import { expect, test } from "vitest";
import { createFirstSeen } from "./resolver.ts";

test("a name is new only once", () => {
  const isNew = createFirstSeen(10);
  expect(["a", "a", "b", "a"].map(isNew)).toEqual([true, false, true, false]);
});

test("forgets the oldest name beyond the limit", () => {
  const isNew = createFirstSeen(2);
  expect(["a", "b", "c", "b", "c", "a"].map(isNew)).toEqual([true, true, true, false, false, true]);
});
