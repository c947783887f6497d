import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { commandNames, loadCommand } from "../../src/tools/cli/command-table.ts";
import { compileErrors, nameOf, writeBlocks } from "./compile.ts";
import {
  allBlocks,
  type CodeBlock,
  codeBlocks,
  documents,
  placeOf,
  root,
  textOf,
} from "./markdown.ts";

const blocks = allBlocks();
const inLanguage = (language: string) => blocks.filter((block) => block.language === language);

test("every block is in a language with a check", () => {
  // ts is compiled, json parsed, sh and mermaid looked at below; console is run by the sessions, text is held against the folders.
  const known = ["ts", "json", "sh", "mermaid", "console", "text"];

  expect(blocks.filter(({ language }) => !known.includes(language)).map(placeOf)).toEqual([]);
  expect(blocks.length).toBeGreaterThan(30);
});

test("every ts block compiles", async () => {
  const written = writeBlocks(inLanguage("ts"));
  try {
    expect(await compileErrors(written)).toEqual([]);
  } finally {
    written.remove();
  }
});

test("a ts block that does not compile is reported with document and line", async () => {
  const text = [
    "# Title",
    "```ts",
    "// first.ts",
    "export const a: number = 1;",
    "```",
    "```ts",
    'import { a } from "./first.ts";',
    "",
    "export const b: string = a;",
    "```",
  ];
  const written = writeBlocks(codeBlocks("docs/broken.md", text.join("\n")));
  try {
    expect(await compileErrors(written)).toEqual([
      expect.stringMatching(/^docs\/broken\.md:9: error TS2322: Type 'number'/),
    ]);
  } finally {
    written.remove();
  }
});

test("an unclosed block is reported, since everything after it would go unchecked", () => {
  expect(() => codeBlocks("docs/open.md", "text\n```ts\nconst a = 1;\n")).toThrow(
    "docs/open.md:3: the block is not closed",
  );
});

test("every json block parses", () => {
  expect(
    inLanguage("json").flatMap((block) => (parses(block.code) ? [] : [placeOf(block)])),
  ).toEqual([]);
});

test("every sh line is an existing command", () => {
  const unknown = inLanguage("sh").flatMap((block) =>
    block.code.split("\n").flatMap((line, index) => {
      const place = placeOf({ ...block, line: block.line + index });
      return line.split("&&").every((command) => isKnown(command.trim().split(/\s+/), block))
        ? []
        : [`${place}: ${line}`];
    }),
  );

  expect(unknown).toEqual([]);
});

test("every npm script, npx command and Node script named in a text exists", () => {
  const unknown = documents.flatMap((document) =>
    [...textOf(document).matchAll(/(?<=`)(?:npm run|npx|node) [^`]+(?=`)/g)].flatMap(([command]) =>
      isNamed(command.split(/\s+/)) ? [] : [`${document}: ${command}`],
    ),
  );

  expect(unknown).toEqual([]);
  expect(
    [
      ["npm", "run", "gone"],
      ["npx", "gone"],
      ["node", "scripts/gone.mjs"],
    ].filter(isNamed),
  ).toEqual([]);
});

test("every mermaid block is of a kind with a check", () => {
  const known = /^(?:flowchart (?:LR|TB)|sequenceDiagram|stateDiagram-v2)\n/;

  expect(
    inLanguage("mermaid").flatMap((block) => (known.test(block.code) ? [] : [placeOf(block)])),
  ).toEqual([]);
});

test("every arrow of a flowchart connects two declared boxes", () => {
  const flowcharts = inLanguage("mermaid").filter(({ code }) => code.startsWith("flowchart "));
  const problems = flowcharts.flatMap((block) => {
    const [head = "", ...lines] = block.code.split("\n");
    const arrow = /^ *(\w+) -->\|"[^"|]+"\| (\w+)$/;
    const box = /^ *(?:subgraph )?(\w+)(?:\["[^"]+"\]|\[\("[^"]+"\)\]|\[\["[^"]+"\]\])$/;
    const boxes = new Set(lines.map((line) => box.exec(line)?.[1]));
    const isRight = (line: string) => {
      const [, from, to] = arrow.exec(line) ?? [];
      return from === undefined
        ? box.test(line) || /^ *(end)?$/.test(line)
        : boxes.has(from) && boxes.has(to);
    };
    const opened =
      lines.filter((line) => /^ *subgraph /.test(line)).length -
      lines.filter((line) => /^ *end$/.test(line)).length;
    const wrong = lines
      .filter((line) => !isRight(line))
      .map((line) => `${placeOf(block)}: ${line.trim()}`);
    return /^flowchart (LR|TB)$/.test(head) && opened === 0
      ? wrong
      : [...wrong, `${placeOf(block)}: ${head}, ${opened} left open`];
  });

  expect(problems).toEqual([]);
  expect(flowcharts.length).toBeGreaterThan(0);
});

test("every sequence diagram uses exactly the participants that it declares", () => {
  const diagrams = inLanguage("mermaid").filter(({ code }) => code.startsWith("sequenceDiagram\n"));

  expect(diagrams.flatMap(sequenceProblems)).toEqual([]);
  expect(diagrams.length).toBeGreaterThan(0);
});

test.each([
  ["a message to nobody", ["participant a as A", "a->>b: hello"], ["a->>b: hello"]],
  [
    "a note about nobody",
    ["participant a as A", "a->>a: hello", "Note over a,b: both"],
    ["Note over a,b: both"],
  ],
  [
    "a participant without a line",
    ["participant a as A", "participant b as B", "a->>a: hello"],
    ["b"],
  ],
  [
    "a text that Mermaid would end early",
    ["participant a as A", "a->>a: one", "a->>a: one; two"],
    ["a->>a: one; two"],
  ],
  ["another statement", ["participant a as A", "a->>a: hello", "autonumber"], ["autonumber"]],
])("a sequence diagram is refused for %s", (_case, lines, wrong) => {
  const [block] = codeBlocks(
    "docs/a.md",
    ["```mermaid", "sequenceDiagram", ...lines, "```"].join("\n"),
  );

  expect(block && sequenceProblems(block)).toEqual(wrong.map((line) => `docs/a.md:2: ${line}`));
});

/** What is wrong with a sequence diagram: participants, messages and notes are all that it may have. */
function sequenceProblems(block: CodeBlock): string[] {
  const lines = block.code
    .split("\n")
    .slice(1)
    .map((line) => line.trim());
  const declared = lines.flatMap((line) => /^participant (\w+) as [^;#]+$/.exec(line)?.[1] ?? []);
  const named = lines.map((line) => {
    const [, from, to] =
      /^(\w+)--?(?:>>|x)(\w+): [^;#]+$/.exec(line) ??
      /^Note over (\w+)(?:,(\w+))?: [^;#]+$/.exec(line) ??
      [];
    return [from, to].filter((name) => name !== undefined);
  });
  const isRight = (line: string, index: number) => {
    const names = named[index] ?? [];
    return line.startsWith("participant ")
      ? /^participant \w+ as [^;#]+$/.test(line)
      : names.length > 0 && names.every((name) => declared.includes(name));
  };
  const unused = declared.filter((name) => !named.flat().includes(name));
  return [...lines.filter((line, index) => !isRight(line, index)), ...unused].map(
    (problem) => `${placeOf(block)}: ${problem}`,
  );
}

const commands = new Map(
  await Promise.all(commandNames.map(async (name) => [name, await loadCommand(name)] as const)),
);

/** A command of the package, with an action and options that it has. */
function isCommand([name = "", action = "", ...others]: readonly string[]): boolean {
  const { actionNames = [], optionNames = [] } = commands.get(name) ?? {};
  const options = [action, ...others].filter((word) => word.startsWith("--"));
  return (
    commands.has(name) &&
    (actionNames.length === 0 || actionNames.includes(action)) &&
    options.every((option) => optionNames.includes(option.slice(2).split("=")[0] ?? ""))
  );
}

const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
};

function isKnown([program, ...words]: readonly string[], block: CodeBlock): boolean {
  const [first = "", second = ""] = words.filter((word) => !word.startsWith("-"));
  if (program === "npm")
    return first === "ci" || first in scripts || (first === "run" && second in scripts);
  if (program === "npx" && words[0] === "keelson") return isCommand(words.slice(1));
  // A Node of the repository runs a file of it, or one that the document gives, with an environment file that is there.
  if (program !== "npx" || first !== "node") return false;
  const envFile = words
    .map((word) => /^--env-file=(.*)/.exec(word)?.[1])
    .find((path) => path !== undefined);
  const isThere =
    existsSync(join(root, second)) ||
    blocks.some((other) => other.document === block.document && nameOf(other) === basename(second));
  return isThere && (envFile === undefined || existsSync(join(root, envFile)));
}

/** In a sentence: a command may have parts that the reader fills in. */
function isNamed([program, ...words]: readonly string[]): boolean {
  const [first = "", second = ""] = words.filter((word) => !word.startsWith("-"));
  if (program === "npm") return second in scripts;
  if (program === "npx")
    return (
      first === "keelson" || first === "node" || existsSync(join(root, "node_modules/.bin", first))
    );
  return first.startsWith("…") || existsSync(join(root, first));
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
