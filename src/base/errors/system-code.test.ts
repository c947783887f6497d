import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { systemCode } from "./system-code.ts";

test("the code of an error is found, also of one that comes from another context", () => {
  expect(systemCode(Object.assign(new Error("it is there"), { code: "EEXIST" }))).toBe("EEXIST");
  const foreign: unknown = runInNewContext(
    'Object.assign(new Error("it is there"), { code: "EEXIST" })',
  );
  expect(foreign).not.toBeInstanceOf(Error);
  expect(systemCode(foreign)).toBe("EEXIST");
});

test.each([new Error("no code"), null, undefined, "EEXIST", 1, {}])("%s has none", (error) => {
  expect(systemCode(error)).toBeUndefined();
});
