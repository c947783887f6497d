import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { help, readOptions } from "./options.ts";

const main = join(import.meta.dirname, "main.ts");

function run(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

test("--help prints the usage and exits with 0", () => {
  expect(run("--help")).toEqual({ status: 0, stdout: `${help}\n`, stderr: "" });
});

test.each([
  [["--minutes", "none"], '--minutes: "none" is not allowed; use a number from 0.1 to 10000'],
  [["--seed", "1.5"], '--seed: "1.5" is not allowed; use a whole number from 0 to 4294967295'],
  [["--defect", "none"], '--defect: "none" is unknown; use early-event, '],
  [["--hours", "1"], "Unknown option '--hours'"],
])("wrong usage exits with 2 and does nothing: %s", (args, message) => {
  const { status, stdout, stderr } = run(...args);
  expect([status, stdout]).toEqual([2, ""]);
  expect(stderr).toContain(`soak: ${message}`);
  expect(stderr).toContain("Run `npm run soak -- --help`.");
});

test("the load lasts 30 minutes unless it is told otherwise, and each run has another seed", () => {
  const given = readOptions(["--minutes", "3", "--seed", "0", "--report", "soak.json"]);
  expect(given).toEqual({ minutes: 3, seed: 0, report: "soak.json", defect: undefined });
  const seeds = new Set([1, 2, 3].map(() => readOptions([])?.seed));
  expect([readOptions([])?.minutes, seeds.size]).toEqual([30, 3]);
});
