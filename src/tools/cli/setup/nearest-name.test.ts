import fc from "fast-check";
import { expect, test } from "vitest";
import { nearestName } from "./nearest-name.ts";

const names = ["doctor", "token", "trace", "tenant", "infra", "api-keys"];

test.each([
  ["docter", "doctor"],
  ["dotcor", "doctor"],
  ["doctors", "doctor"],
  ["tokn", "token"],
  ["tarce", "trace"],
  ["apikeys", "api-keys"],
  ["deploy", undefined],
  ["", undefined],
  ["x".repeat(1_000_000), undefined],
])("%.20s probably means %s", (typed, meant) => {
  expect(nearestName(typed, names)).toBe(meant);
});

test("one wrong character in four or more finds the name", () => {
  const name = fc.stringMatching(/^[a-z]{4,20}$/);
  fc.assert(
    fc.property(name, fc.nat(), (right, at) => {
      const index = at % right.length;
      const typed = `${right.slice(0, index)}-${right.slice(index + 1)}`;
      expect(nearestName(typed, [right])).toBe(right);
    }),
  );
});
