import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "keelson-sources-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Runs the check on one file and returns the lines that it prints. */
async function check(text: string, name = "a.ts"): Promise<readonly string[]> {
  writeFileSync(join(folder, name), text);
  const script = join(import.meta.dirname, "../../scripts/sources.mjs");
  const outcome = await promisify(execFile)(process.execPath, [script, folder]).catch(
    (error: { stdout: string }) => error,
  );
  return outcome.stdout.trimEnd().split("\n");
}

test("a file of 300 lines passes, and a longer one fails", async () => {
  expect(await check(`${"\n".repeat(299)}let a;\n`)).toEqual(["sources: clean"]);
  expect(await check(`${"\n".repeat(300)}let a;\n`)).toEqual(["a.ts has 301 lines, more than 300"]);
});

test.each([
  ["makeA", "export function makeA() {", "}"],
  ["makeB", "export const makeB = async () => {", "};"],
  ["makeC", "export const all = { makeC() {", "} };"],
  ["makeD", "export const all = { makeD: function () {", "} };"],
  ["makeE", "export class E { private makeE() {", "} }"],
  ["a function", "[1].forEach(() => {", "});"],
])("a function of 100 lines passes, and a longer one fails: %s", async (name, open, close) => {
  const text = (lines: number) => `let a;\n${open}\n${"  a = 1;\n".repeat(lines - 2)}${close}\n`;
  expect(await check(text(100))).toEqual(["sources: clean"]);
  expect(await check(text(101))).toEqual([`a.ts:2 ${name} has 101 lines, more than 100`]);
});

test("a function counts its nested functions, and each of them is a finding of its own", async () => {
  const text = `function outer() {\n  function inner() {\n${"\n".repeat(100)}  }\n}\n`;
  expect(await check(text)).toEqual([
    "a.ts:1 outer has 104 lines, more than 100",
    "a.ts:2 inner has 102 lines, more than 100",
  ]);
});

test("tests are not checked", async () => {
  expect(await check(`${"\n".repeat(300)}let a;\n`, "b.test.ts")).toEqual(["sources: clean"]);
});
