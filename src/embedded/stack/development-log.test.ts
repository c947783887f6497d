// own process: it replaces modules
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { developmentLogFiles, openDevelopmentLog } from "./development-log.ts";

vi.mock("node:fs", async (importOriginal) => {
  const fs = await importOriginal<typeof import("node:fs")>();
  return { ...fs, statSync: vi.fn(fs.statSync) };
});

let directory: string;
beforeEach(() => {
  directory = join(mkdtempSync(join(tmpdir(), "keelson-log-")), "data");
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const env = { NODE_ENV: "development" };
const read = (at: 0 | 1) => readFileSync(developmentLogFiles(directory)[at], "utf8");

test("buffers records, and writes them as lines that only their owner can read", async () => {
  const log = openDevelopmentLog(directory, env);
  log.keep('{"a":1}');
  log.keep('{"a":2}');
  expect(() => read(1)).toThrow("ENOENT");
  await expect.poll(() => read(1)).toBe('{"a":1}\n{"a":2}\n');
  expect(statSync(developmentLogFiles(directory)[1]).mode & 0o777).toBe(0o600);
  log.keep('{"a":3}');
  log.close();
  expect(read(1)).toContain('{"a":3}\n');
  log.keep('{"a":4}');
  log.close();
  expect(read(1)).not.toContain('{"a":4}\n');
});

test("keeps two files of a bounded size", () => {
  const log = openDevelopmentLog(directory, env, 1_000_000);
  const line = JSON.stringify({ text: "x".repeat(99_989) });
  for (let count = 0; count < 55; count += 1) log.keep(line);
  log.close();
  expect(read(0).length).toBeGreaterThan(900_000);
  expect(read(0).length).toBeLessThan(1_400_000);
  expect(read(1).length).toBeLessThan(1_400_000);
  for (const text of [read(0), read(1)])
    expect(new Set(text.trimEnd().split("\n"))).toEqual(new Set([line]));
});

test("keeps writing after another process has rotated the file in the meantime", async () => {
  const fs = await vi.importActual<typeof import("node:fs")>("node:fs");
  const log = openDevelopmentLog(directory, env);
  const long = "x".repeat(300_000);
  const [before, current] = developmentLogFiles(directory);
  vi.mocked(statSync).mockImplementationOnce((...given) => {
    renameSync(current, before);
    return fs.statSync(...given);
  });

  log.keep(long);
  log.keep("next");
  log.close();

  expect([read(0), read(1)]).toEqual([`${long}\n`, "next\n"]);
});

test("drops records without an error when the directory cannot be written to", () => {
  const log = openDevelopmentLog(directory, env);
  const [, current] = developmentLogFiles(directory);
  mkdirSync(current);
  log.keep("{}".repeat(200_000));
  rmSync(current, { recursive: true });
  log.keep("{}");
  log.close();
  expect(() => read(1)).toThrow("ENOENT");
});

test("refuses production and Lambda", () => {
  expect(() => openDevelopmentLog(directory, {})).toThrow("The development log is for development");
  expect(() => openDevelopmentLog(directory, { ...env, AWS_LAMBDA_FUNCTION_NAME: "f" })).toThrow(
    "not for Lambda",
  );
});
