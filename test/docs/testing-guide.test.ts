import { afterAll, expect, test } from "vitest";
import { writeBlocks } from "./compile.ts";
import { allBlocks } from "./markdown.ts";

// The tests that the guides show are run as they stand: importing them registers them here.
const guides = ["docs/testing.md", "docs/testing-failures.md"];
const written = writeBlocks(
  allBlocks().filter(({ document, language }) => guides.includes(document) && language === "ts"),
);
const shown = written.files.map(({ path }) => path).filter((path) => path.endsWith(".test.ts"));
afterAll(() => written.remove());

test("the testing guides show six test files", () => {
  expect(shown.length).toBe(6);
});

for (const path of shown) await import(path);
