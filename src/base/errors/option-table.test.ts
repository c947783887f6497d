import { expect, test } from "vitest";
import type { BootProblem } from "./boot.ts";
import { assertKnownOptions, kind, tableProblems, unknownOptions } from "./option-table.ts";

const known = ["access", "handler", "input"];

test.each([
  ["acces", "did you mean `access`? known are access, handler, input"],
  ["handlers", "did you mean `handler`? known are access, handler, input"],
  ["Input", "did you mean `input`? known are access, handler, input"],
  ["cache", "known are access, handler, input"],
  ["", "known are access, handler, input"],
])("an unknown option %j gets a fix", (name, fix) => {
  const found: Omit<BootProblem, "feature">[] = [];
  unknownOptions("files.file.show", { [name]: 1, access: 1 }, known, (one) => found.push(one));
  const message = `unknown option ${JSON.stringify(name)}`;
  expect(found).toEqual([{ key: "files.file.show", rule: "unknown-option", message, fix }]);

  expect(() => assertKnownOptions("ctx.call", { access: 1, [name]: 1 }, known)).toThrow(
    new TypeError(`ctx.call: ${message}; ${fix}`),
  );

  const anything = kind(() => true, "anything");
  const table = Object.fromEntries(known.map((one) => [one, anything]));
  expect(tableProblems("auth", { [name]: 1 }, table)).toEqual([
    { key: `auth.${name}`, rule: "unknown-option", message, fix },
  ]);
});

test.each([[undefined], [{}], [{ access: undefined }]])("%j has no unknown option", (options) => {
  expect(() => assertKnownOptions("ctx.call", options, known)).not.toThrow();
});

test.each<[unknown, string]>([
  [null, "null"],
  [7, "7"],
  ["access", '"access"'],
  [[], "[]"],
])("%j is no object of options", (options, shown) => {
  expect(() => assertKnownOptions("ctx.call", options, known)).toThrow(
    new TypeError(`ctx.call: the options are ${shown}; pass an object with access, handler, input`),
  );
});

test.each<[unknown, string]>([
  [0, "0"],
  [1.5, "1.5"],
  [Number.NaN, "NaN"],
  [true, "true"],
  ["x".repeat(101), JSON.stringify("x".repeat(100))],
  [null, "a value of type null"],
  [{}, "a value of type object"],
])("the problem of %j shows the value %s", (given, shown) => {
  const nothing = kind(() => false, "nothing");
  expect(tableProblems("cache", { pages: given }, { pages: nothing })).toMatchObject([
    { key: "cache.pages", message: `${shown} is not allowed` },
  ]);
});

test.each([[7], [true], ["s3cret"]])(
  "the problem of the secret %j shows only its type",
  (given) => {
    const nothing = kind(() => false, "nothing");
    expect(tableProblems("hooks", { secret: given }, { secret: nothing })).toMatchObject([
      { message: `a value of type ${typeof given} is not allowed` },
    ]);
  },
);
