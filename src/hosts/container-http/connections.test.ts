import { expect, test } from "vitest";
import { SmallSet } from "./connections.ts";

test("keeps the remaining members when others are removed in any order", () => {
  const set = new SmallSet<string>();
  for (const name of ["a", "b", "c", "d"]) set.add(name);
  expect([set.delete("b"), set.delete("b"), set.delete("d"), set.delete("x")]).toEqual([
    true,
    false,
    true,
    false,
  ]);
  set.add("e");
  expect([set.size, ...set]).toEqual([3, "a", "c", "e"]);
  expect([
    set.delete("c"),
    set.delete("a"),
    set.delete("x"),
    set.delete("e"),
    set.delete("e"),
  ]).toEqual([true, true, false, true, false]);
  expect([set.size, ...set]).toEqual([0]);
});

test("visits all members, even when each is removed during its visit", () => {
  const set = new SmallSet<number>();
  for (const number of [1, 2, 3]) set.add(number);
  const seen: number[] = [];
  for (const number of set) {
    set.delete(number);
    seen.push(number);
  }
  expect([seen, set.size]).toEqual([[1, 2, 3], 0]);
});
