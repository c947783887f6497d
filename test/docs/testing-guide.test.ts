import { afterAll, expect, test } from "vitest";
import { writeBlocks } from "./compile.ts";
import { allBlocks } from "./markdown.ts";

// The tests that the guide shows are run as they stand: importing them registers them here.
const written = writeBlocks(
  allBlocks().filter(
    ({ document, language }) => document === "docs/testing.md" && language === "ts",
  ),
);
const shown = written.files.map(({ path }) => path).filter((path) => path.endsWith(".test.ts"));
afterAll(() => written.remove());

test("the testing guide shows six test files", () => {
  expect(shown.length).toBe(6);
});

for (const path of shown) await import(path);
