import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

const script = join(import.meta.dirname, "../../scripts/pages.mjs");

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "keelson-pages-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const index = (rows: string) =>
  `# Documentation\n\n## How-to\n\n| Page | For | |\n|---|---|---|\n${rows}\n`;
const row = "| [a.md](a.md) | developers | a |";

test("a listed page with its addresses is clean", async () => {
  const files = {
    "docs/README.md": index(row),
    "docs/a.md": "# A\n\n## Two words\n",
    "src/a.ts": "// See docs/a.md, docs/a.md#two-words.\n",
  };
  expect(await check(files)).toEqual({ code: 0, lines: ["pages: clean"] });
});

test("a page of more than 250 lines is refused", async () => {
  const files = { "docs/README.md": index(row), "docs/a.md": `# A\n${"\ntext".repeat(249)}\n` };
  expect(await check(files)).toEqual({
    code: 1,
    lines: ["docs/a.md has 251 lines, more than 250: split it by tasks"],
  });
});

test.each([
  ["a page without a row", "", ["docs/README.md has 0 rows of docs/a.md, which needs one"]],
  [
    "a page with two rows",
    `${row}\n${row}`,
    ["docs/README.md has 2 rows of docs/a.md, which needs one"],
  ],
  [
    "unknown readers",
    "| [a.md](a.md) | all and sundry | a |",
    ["docs/README.md: a.md is for all and sundry"],
  ],
  ["an unknown kind", `\n## Various\n\n${row}`, ["docs/README.md: a.md is below Various"]],
])("an index is refused for %s", async (_case, rows, lines) => {
  expect(await check({ "docs/README.md": index(rows), "docs/a.md": "# A\n" })).toEqual({
    code: 1,
    lines,
  });
});

test("an address that leads to no page or heading is refused, with its place", async () => {
  const files = {
    "docs/README.md": index(row),
    "docs/a.md": "# A\n\n```sh\n# not a heading\n```\n",
    "src/a.ts": "\n// See docs/a.md#gone and docs/gone.md.\n",
    "infra/generated/all.json": '{ "AlarmDescription": "See docs/a.md#not-a-heading." }',
  };
  expect(await check(files)).toEqual({
    code: 1,
    lines: [
      "infra/generated/all.json:1 docs/a.md#not-a-heading leads nowhere",
      "src/a.ts:2 docs/a.md#gone leads nowhere",
      "src/a.ts:2 docs/gone.md leads nowhere",
    ],
  });
});

/** Runs the script on a repository of these files. */
function check(files: Readonly<Record<string, string>>) {
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }
  return new Promise<{ code: number; lines: string[] }>((resolve) => {
    execFile(process.execPath, [script, root], (error, stdout) =>
      resolve({ code: error === null ? 0 : Number(error.code), lines: stdout.trim().split("\n") }),
    );
  });
}
