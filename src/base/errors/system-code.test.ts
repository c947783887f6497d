import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { systemCode } from "./system-code.ts";

test("returns the code of an error, even from another context", () => {
  expect(systemCode(Object.assign(new Error("it is there"), { code: "EEXIST" }))).toBe("EEXIST");
  const foreign: unknown = runInNewContext(
    'Object.assign(new Error("it is there"), { code: "EEXIST" })',
  );
  expect(foreign).not.toBeInstanceOf(Error);
  expect(systemCode(foreign)).toBe("EEXIST");
});

test.each([new Error("no code"), null, undefined, "EEXIST", 1, {}])(
  "finds no code in %s",
  (error) => {
    expect(systemCode(error)).toBeUndefined();
  },
);
