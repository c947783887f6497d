import { afterAll, beforeAll, expect, test } from "vitest";
import { compileErrors, type WrittenBlocks, writeBlocks } from "../docs/compile.ts";
import { type Mistake, mistakes, moduleOf } from "./mistakes.ts";

let written: WrittenBlocks;
let errors: readonly string[];

beforeAll(async () => {
  const blocks = mistakes.map(({ name, code }) => ({
    ...{ document: name, line: 1, language: "ts", heading: "" },
    code: moduleOf(code),
  }));
  written = writeBlocks(blocks);
  errors = await compileErrors(written);
});
afterAll(() => written.remove());

test.each(
  mistakes.map((mistake): [string, Mistake] => [mistake.name.replaceAll("-", " "), mistake]),
)("the compiler says in one line what is wrong with %s", (_, { name, message }) => {
  const own = errors
    .filter((error) => error.startsWith(`${name}:`))
    .map((error) => error.replace(/^.*: error TS\d+: /, ""));

  expect(own).toEqual([message]);
});

test("the compiler says nothing but what is asked for here", () => {
  const known = errors.filter((error) => mistakes.some(({ name }) => error.startsWith(`${name}:`)));

  expect(errors).toEqual(known);
});
