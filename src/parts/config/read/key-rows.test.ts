import { expect, test } from "vitest";
import { type Decision, FewDecisions } from "./key-rows.ts";

test("holds the last decision for each key of a caller", () => {
  const held = new FewDecisions();
  // Only what is put in has to come out.
  const [first, second, third] = ["a", "b", "c"].map(
    (value) => ({ value }) as unknown as Decision,
  ) as [Decision, Decision, Decision];
  expect(held.get("one")).toBeUndefined();
  held.set("one", first);
  held.set("two", second);
  expect([held.get("one"), held.get("two"), held.get("three")]).toEqual([first, second, undefined]);
  held.set("one", third);
  held.set("two", first);
  expect([held.get("one"), held.get("two")]).toEqual([third, first]);
});
