// Each `keelson …` on a page of the runbook is run, without an account and with a module that cannot be loaded: it fails, but
// not for wrong usage.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { generateSecret } from "../../src/parts/api-keys/secret.ts";
import { commandNames, loadCommand } from "../../src/tools/cli/command-table.ts";
import { ranCommand } from "../support/ran-command.ts";
import { codeBlocks, root, textOf } from "./markdown.ts";
import { runbookPages } from "./runbook-pages.ts";

const pages = [
  ...runbookPages,
  {
    document: "docs/runbook.md",
    text: textOf("docs/runbook.md"),
    blocks: codeBlocks("docs/runbook.md", textOf("docs/runbook.md")),
  },
];

/** Each command with its page: lines of blocks, and code in sentences that has more than a name. */
const commands = new Map(
  pages.flatMap(({ document, text, blocks }) => {
    const lines = blocks
      .flatMap(({ code }) => code.split("\n"))
      .flatMap((line) => /^(?:[A-Z_]+=\S+ )*npx keelson (.*)$/.exec(line)?.[1] ?? []);
    const prose = text.replaceAll(/^(`{3,})[\s\S]*?^\1$/gm, "");
    const inline = [...prose.matchAll(/`keelson ([^`]+)`/g)].map(([, command = ""]) => command);
    return [...lines, ...inline].map((command) => [command, document] as const);
  }),
);

/** Words of a command line: quoted ones may have spaces; a redirection is left out. */
function wordsOf(command: string): string[] {
  return [...command.replace(/ < \S+$/, "").matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, bare]) => single ?? double ?? bare ?? "",
  );
}

/** Names of commands, and commands whose module the sentence leaves out. */
const shortened = /^(?:[\w-]+|outbox list|key-ring list|contract check)$/;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-runbook-"));
  await writeFile(join(folder, "broken.mjs"), 'throw new Error("it is broken");');
  await writeFile(join(folder, "lines.log"), "");
});
afterAll(() => rm(folder, { recursive: true }));

test("the pages name commands", () => {
  expect(commands.size).toBeGreaterThan(25);
});

test.each([...commands])(
  "keelson %s (%s) is a command with an action and options that exist",
  async (command) => {
    const [name = "", action = "", ...others] = wordsOf(command);
    expect(commandNames).toContain(name);
    const { actionNames = [], optionNames = [] } = (await loadCommand(name)) ?? {};
    if (actionNames.length > 0 && action !== "") expect(actionNames).toContain(action);
    const options = others.filter((word) => word.startsWith("--")).map((word) => word.slice(2));
    expect(options.filter((option) => !optionNames.includes(option))).toEqual([]);
  },
);

test.each([...commands.keys()].filter((command) => !shortened.test(command)))(
  "keelson %s is no wrong usage",
  async (command) => {
    const words = wordsOf(command).map((word) =>
      /\.(?:m?js|ts|log|ndjson|json)$/.test(word) ? fileOf(word) : word,
    );
    const { code, err } = await ranCommand(words, {
      env: { AWS_ENDPOINT_URL: "http://127.0.0.1:9", AWS_EC2_METADATA_DISABLED: "true" },
      input: () => Readable.from([`${generateSecret()}\n`]),
      wait: async () => undefined,
    });

    expect(code, err).not.toBe(2);
  },
);

test("a word in capitals is a placeholder that docs/runbook.md explains, and examples do not stand in for one", () => {
  const [, section = ""] = textOf("docs/runbook.md").split("\n## Placeholders\n");
  const rows = [...(section.split("\n## ")[0] ?? "").matchAll(/^\| (`[^|]*) \|/gm)];
  const explained = rows.flatMap(([, cell = ""]) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name),
  );
  const code = pages.flatMap(({ text, blocks }) => [
    ...blocks.map((block) => block.code),
    ...[...text.replaceAll(/^(`{3,})[\s\S]*?^\1$/gm, "").matchAll(/`([^`\n]+)`/g)].map(
      ([, inline = ""]) => inline,
    ),
  ]);
  const used = new Set(
    code.flatMap((each) => [...each.matchAll(capitals)].map(([word]) => word)).filter(isNoName),
  );

  expect([...used].sort()).toEqual([...explained].sort());
  for (const each of pages.flatMap(({ blocks }) => blocks.map((block) => block.code)))
    expect(each).not.toMatch(/\bacme\b|my-app|[\da-f]{8}-[\da-f]{4}|key_[\da-f]|keelson-\w/);
});

const capitals = /(?<![\w])[A-Z][A-Z_]{2,}(?!\w)/g;

/** Methods of HTTP, a word of the AWS CLI, an option's unit, and environment variables have capitals too. */
function isNoName(word: string): boolean {
  return !/^(?:GET|POST|PUT|PATCH|DELETE|CAPABILITY_IAM|KEELSON_\w*|OK|ARN)$/.test(word);
}

function fileOf(word: string): string {
  if (word.endsWith(".json")) return join(root, "infra/generated/all-dev.json");
  return join(folder, /\.[jt]s$/.test(word) ? "broken.mjs" : word.replaceAll("/", "-"));
}
