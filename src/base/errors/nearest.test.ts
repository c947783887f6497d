import { expect, test } from "vitest";
import { nearest } from "./nearest.ts";

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
