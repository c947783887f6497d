import { afterAll, beforeAll, expect, test } from "vitest";
import { compileErrors, type WrittenBlocks, writeBlocks } from "../docs/compile.ts";
import { type Mistake, mistakes, moduleOf } from "./mistakes.ts";

let written: WrittenBlocks;
/** Errors with all their lines. */
let errors: readonly string[];

beforeAll(async () => {
  const blocks = mistakes.map(({ name, code }) => ({
    ...{ document: name, line: 1, language: "ts", heading: "" },
    code: moduleOf(code),
  }));
  written = writeBlocks(blocks);
  errors = (await compileErrors(written)).join("\n").split(/\n(?! )/);
});
afterAll(() => written.remove());

test.each(
  mistakes.map((mistake): [string, Mistake] => [mistake.name.replaceAll("-", " "), mistake]),
)("the compiler says what is wrong with %s", (_, { name, code, message, field }) => {
  const own = errors.filter((error) => error.startsWith(`${name}:`));

  expect(own.map((error) => error.replace(/^.*?: error TS\d+: /, ""))).toEqual([message]);
  if (field === undefined) return;
  const line = Number(own[0]?.slice(`${name}:`.length).split(":")[0]);
  expect(moduleOf(code).split("\n")[line - 1]?.trim()).toMatch(new RegExp(`^${field}:`));
});

test("no message speaks of `never`, which names no mistake", () => {
  // Texts of keelson's own, and the type of a table without indexes and a sort key, may have the word.
  const others = errors.map((error) => error.replaceAll(/"[^"]*"|TableOptions<[^>]*>/g, ""));
  expect(others.filter((error) => /\bnever\b/.test(error))).toEqual([]);
});

test("the compiler says nothing but what is asked for here", () => {
  const known = errors.filter((error) => mistakes.some(({ name }) => error.startsWith(`${name}:`)));

  expect(errors).toEqual(known);
});
