import fc from "fast-check";
import { expect, test } from "vitest";
import { derivedId } from "./derived-id.ts";

const parts = fc.array(
  fc.oneof(
    fc.string({ unit: "grapheme" }),
    fc.constantFrom("", ":", "1:a", "0:", "2:", "a1:b"),
    fc.nat(),
  ),
);

test("an ID is a version 8 UUID, and equal parts give equal IDs", () => {
  fc.assert(
    fc.property(parts, (given) => {
      const id = derivedId(...given);
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(derivedId(...structuredClone(given))).toBe(id);
    }),
  );
});

test("the ID of given parts is stable across releases", () => {
  expect(derivedId("claim", "event", "file.created", 0)).toBe(
    "e86314c3-748a-84b7-b507-6a9a88f30771",
  );
});

test("different parts give different IDs", () => {
  const texts = (given: readonly (string | number)[]) => JSON.stringify(given.map(String));
  fc.assert(
    fc.property(parts, parts, (one, other) => {
      fc.pre(texts(one) !== texts(other));
      expect(derivedId(...one)).not.toBe(derivedId(...other));
    }),
  );
});

test.each([
  [
    ["ab", "c"],
    ["a", "bc"],
  ],
  [["ab"], ["a", "b"]],
  [["a", ""], ["a"]],
  [
    ["", "a"],
    ["a", ""],
  ],
  [["a1:b"], ["a", "b"]],
  [["1:a"], ["a"]],
  [["a:b"], ["a", "b"]],
  [
    ["a", 1, 2],
    ["a", 12],
  ],
  [[], [""]],
  [["ä"], ["a\u0308"]],
])("%j and %j give different IDs", (one, other) => {
  expect(derivedId(...one)).not.toBe(derivedId(...other));
});
