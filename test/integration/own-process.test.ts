import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const read = (file: string) => readFileSync(join(root, file), "utf8");
const listed = (patterns: readonly string[], ...exclude: string[]) =>
  globSync(patterns, { cwd: root, exclude: ["**/node_modules/**", ...exclude] });

/**
 * Nothing puts these back: modules replaced or loaded anew, or that have read Lambda's global. Fake timers never fire in a
 * process in which other files have left timers of their own.
 */
const lasting =
  /\bvi\.(?:mock|doMock|unmock|doUnmock|resetModules|useFakeTimers)\(|\bstubGlobal\("awslambda"/;

test("a file that changes its process for good says so in its first line, with the reason", () => {
  const patterns = ["src/**/*.test.ts", "examples/**/*.test.ts", "test/**/*.test.ts"];
  const files = listed(patterns, "test/consumer/**", "**/*.system.test.ts");
  const marked = files.filter((file) => /^\/\/ own process: \S/.test(read(file)));

  expect(marked).toEqual(files.filter((file) => lasting.test(read(file))));
  expect(marked).not.toEqual([]);
});

test("what test files share never changes a process for good", () => {
  const shared = listed(["test/**/*.ts"], "test/consumer/**", "**/*.test.ts");
  expect(shared.filter((file) => lasting.test(read(file)))).toEqual([]);
});
