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

test.each([
  ["/** The claim is none of ours. */", '"is none": write there is no ...'],
  ["// It was mended later.", '"mended": write fixed'],
  ["/** Lets it run. */", '"Lets it run": write runs'],
  ["/** Read by who has schedules. */", '"by who": write a noun'],
  ["/** Two\n * lines for whoever waits. */", '"whoever": write the caller, the process ...'],
])("translated English in a comment is refused: %s", async (comment, finding) => {
  expect(await check(`${comment}\nexport const a = 1;\n`)).toEqual([`a.ts:1 ${finding}`]);
});

test("strings, tests and tool directives may contain translated English", async () => {
  const mark = "// biome-ignore lint/x: there is none, whoever asks\n";
  expect(await check(`${mark}export const a = "mended";\n`)).toEqual(["sources: clean"]);
  expect(await check("// mended\n", "b.test.ts")).toEqual(["sources: clean"]);
});

test("at most 100 comments start with a question word", async () => {
  const comments = (count: number) => "/** What it is. */\nlet a;\n".repeat(count);
  expect(await check(comments(100))).toEqual(["sources: clean"]);
  const found = await check(comments(101));
  expect(found[0]).toBe("101 comments open with What, Who, Whose, Where or How, more than 100:");
  expect(found[1]).toBe("  a.ts:1 What it is.");
});
