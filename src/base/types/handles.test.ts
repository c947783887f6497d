import { expect, test } from "vitest";
import { handleOf, nameOf } from "./handles.ts";

test("a handle is frozen, and has nothing but its kind and its name", () => {
  const handle = handleOf("job", "files.file.scan");
  expect(handle).toEqual({ kind: "job", name: "files.file.scan" });
  expect(Object.isFrozen(handle)).toBe(true);
});

test.each<[unknown, string]>([
  ["files.file.scan", "files.file.scan"],
  ["", ""],
  [handleOf("event", "file.created"), "file.created"],
  [{ name: "file.created" }, "file.created"],
  [{ name: 7 }, "an object"],
  [{}, "an object"],
  [Object.create(null), "an object"],
  [[], "[]"],
  [null, "null"],
  [undefined, "undefined"],
  [7, "7"],
  [Symbol("x"), "a symbol"],
])("the name of %o", (given, name) => {
  expect(nameOf(given)).toBe(name);
});
