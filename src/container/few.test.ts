import { expect, test } from "vitest";
import { Few } from "./few.ts";

test("members come and go in any order, and those that are left keep theirs", () => {
  const few = new Few<string>();
  for (const name of ["a", "b", "c", "d"]) few.add(name);
  expect([few.delete("b"), few.delete("b"), few.delete("d"), few.delete("x")]).toEqual([true, false, true, false]);
  few.add("e");
  expect([few.size, ...few]).toEqual([3, "a", "c", "e"]);
  expect([few.delete("c"), few.delete("a"), few.delete("x"), few.delete("e"), few.delete("e")]).toEqual([
    true,
    true,
    false,
    true,
    false,
  ]);
  expect([few.size, ...few]).toEqual([0]);
});

test("all that were there are gone through, also where each takes itself out", () => {
  const few = new Few<number>();
  for (const number of [1, 2, 3]) few.add(number);
  const seen: number[] = [];
  for (const number of few) {
    few.delete(number);
    seen.push(number);
  }
  expect([seen, few.size]).toEqual([[1, 2, 3], 0]);
});
