import { expect, test } from "vitest";
import { createFirstSeen } from "./first-seen.ts";

test("a name is new only once", () => {
  const seen = createFirstSeen(10);
  expect([seen.isNew("a"), seen.isNew("a"), seen.isNew("b"), seen.isNew("a")]).toEqual([
    true,
    false,
    true,
    false,
  ]);
});

test("forgets the oldest name beyond the limit", () => {
  const seen = createFirstSeen(2);
  for (const name of ["a", "b", "c"]) seen.isNew(name);
  expect([seen.isNew("b"), seen.isNew("c"), seen.isNew("a")]).toEqual([false, false, true]);
});
