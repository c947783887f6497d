import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "keelson-wording-"));
});
afterEach(() => rmSync(root, { recursive: true }));

/** Runs the check on the files and returns its exit code and the lines that it prints. */
async function check(files: Readonly<Record<string, string>>, ...args: readonly string[]) {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  const script = join(import.meta.dirname, "../../scripts/wording.mjs");
  const { stdout, code = 0 } = await promisify(execFile)(process.execPath, [script, root, ...args])
    .then((done) => ({ ...done, code: 0 }))
    .catch((error: { stdout: string; code: number }) => error);
  return { code, lines: stdout.trimEnd().split("\n") };
}

const clean = { code: 0, lines: ["wording: clean"] };
const plain = "The server reads the row and returns its value to the caller in one call. ";

test("a page in plain English passes", async () => {
  expect(await check({ "README.md": `# What it is\n\n${plain}\n` })).toEqual(clean);
});

test("more than 2 findings per 1,000 words of the documents are refused, and each is printed", async () => {
  const page = `${plain.repeat(20)}\n\nNobody reads it.\n`;
  expect(await check({ "docs/a.md": page })).toEqual({
    code: 1,
    lines: [
      'docs/a.md:3 "Nobody": write no client, an operator, every caller',
      "README.md and docs: 3.3 findings per 1,000 words, more than 2",
    ],
  });
  expect(await check({ "docs/a.md": `${plain.repeat(40)}\n\nNobody reads it.\n` })).toEqual(clean);
});

test("a page with several findings is refused, even if all pages together pass", async () => {
  const page = `${plain.repeat(20)}\n\nNobody reads it, and it is none. A field of its own is enough.\n`;
  const { code, lines } = await check({ "docs/a.md": page, "README.md": plain.repeat(200) });
  expect(code).toBe(1);
  expect(lines.at(-1)).toMatch(/^docs\/a\.md: \d+\.\d findings per 1,000 words, more than 6$/);
});

test("headings, code and titles of links are not read as sentences", async () => {
  const page = [
    "## What nobody has",
    "",
    "```ts",
    "// whoever needs none",
    "```",
    "",
    `See [the \`nobody\` page](nobody.md#whoever). ${plain}`,
    "",
    "| Name | Value |",
    "|---|---|",
    "| `nobody` | 1 |",
  ];
  expect(await check({ "docs/a.md": page.join("\n") })).toEqual(clean);
});

test("comments and messages of the sources are read, up to 5 findings per 1,000 words", async () => {
  const text = `/** Reads a text of the row. */\nexport const message = "the row is stored for nobody at once";\n`;
  const { code, lines } = await check({ "src/a.ts": text });
  expect(code).toBe(1);
  expect(lines).toEqual([
    'src/a.ts:1 "a text": write a string, a message',
    'src/a.ts:2 "nobody": write no client, an operator, every caller',
    'src/a.ts:2 "at once": write immediately, at the same time; at most three',
    expect.stringMatching(/^src: \d+\.\d findings per 1,000 words, more than 5$/),
  ]);
});

test("short strings, tests and directives of tools are not read", async () => {
  const directive = "// biome-ignore lint/x: there is none, whoever asks\n";
  const sources = {
    "src/a.ts": `${directive}export const a = "nobody";\n`,
    "src/a.test.ts": "// Whoever mended it.\n",
  };
  expect(await check(sources)).toEqual(clean);
});

test.each([
  ["/** The claim is none of ours. */", '"is none": write there is no ...'],
  ["// It was mended later.", '"mended": write fixed'],
  ["/** Lets it run. */", '"Lets it run": write runs'],
  ["/** Read by who has schedules. */", '"by who": write a noun'],
  ["/** Two\n * lines for whoever waits. */", '"whoever": write the caller, the process ...'],
])("a comment must not contain %s", async (comment, finding) => {
  const { code, lines } = await check({
    "src/a.ts": `${comment}\nexport const a = 1;\n`,
    "src/b.ts": `/** ${plain.repeat(60)}*/\n`,
  });
  expect(code).toBe(1);
  expect(lines).toContain(`src/a.ts:1 ${finding}`);
});

test("at most 100 comments start with a question word", async () => {
  const comments = (count: number) =>
    `/** ${plain.repeat(4_000)}*/\n${"/** What it is. */\nlet a;\n".repeat(count)}`;
  expect(await check({ "src/a.ts": comments(100) })).toEqual(clean);
  const { lines } = await check({ "src/a.ts": comments(101) });
  expect(lines[0]).toBe("101 comments open with What, Who, Whose, Where or How, more than 100:");
  expect(lines[1]).toBe("  src/a.ts:2 What it is.");
});

test("--list prints every finding and the rates, and still passes below the bounds", async () => {
  const page = `${plain.repeat(40)}\n\nNobody reads it.\n`;
  expect(await check({ "docs/a.md": page }, "--list")).toEqual({
    code: 0,
    lines: [
      'docs/a.md:3 "Nobody": write no client, an operator, every caller',
      "README.md and docs: 1.7 findings per 1,000 words",
      "src: 0.0 findings per 1,000 words",
      "wording: clean",
    ],
  });
});
