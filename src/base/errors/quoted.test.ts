import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { nearest, quoted } from "./quoted.ts";

describe("quoted", () => {
  test.each<[unknown, string]>([
    ["ten", '"ten"'],
    ["a\nb", '"a\\nb"'],
    [10, "10"],
    [10n, "10"],
    [null, "null"],
    [undefined, "undefined"],
    [true, "true"],
    [Symbol("x"), "a symbol"],
    [() => 1, "a function"],
    [{ a: 1 }, "an object"],
    [["a", 1, {}], '["a", 1, an object]'],
  ])("writes %o as %s", (value, text) => {
    expect(quoted(value)).toBe(text);
  });

  test("makes any value one bounded line", () => {
    fc.assert(
      fc.property(
        fc.anything({ withBigInt: true, withNullPrototype: true, withSparseArray: true }),
        (value) => {
          const text = quoted(value);
          expect(text.length).toBeLessThan(600);
          expect(text).not.toMatch(/[\r\n]/);
        },
      ),
    );
    expect(quoted("x".repeat(1_000_000)).length).toBeLessThan(100);
    expect(quoted(Array.from({ length: 1_000_000 }, () => "x")).length).toBeLessThan(100);
  });
});

const ids = ["files:config:max-upload-size-mb", "files:config:list-order", "billing:config:plan"];

test.each([
  ["files:config:max-upload-size", "files:config:max-upload-size-mb"],
  ["files:config:maxUploadSizeMb", "files:config:max-upload-size-mb"],
  ["file:config:list-order", "files:config:list-order"],
  ["billing:config:plan", "billing:config:plan"],
])("%s suggests %s", (name, meant) => {
  expect(nearest(name, ids)).toBe(meant);
});

test.each(["", "x", "__proto__", "something-else-altogether"])(
  "suggests nothing for %j",
  (name) => {
    expect(nearest(name, ids)).toBeUndefined();
  },
);

test("compares a very long name by its beginning", () => {
  expect(nearest("x".repeat(1_000_000), ids)).toBeUndefined();
});

test("suggests names up to a third of the length away, and none farther", () => {
  expect(nearest("abcdef", ["abcdXY"])).toBe("abcdXY");
  expect(nearest("abcXdef", ["abcdef"])).toBe("abcdef");
  expect(nearest("abcdef", ["abcXYZ", ""])).toBeUndefined();
  expect(nearest("abcdef", ["abcdXY", "abcdeX", "Xabcdef"])).toBe("abcdeX");
});
