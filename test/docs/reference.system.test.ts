import { spawnSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { root as repository } from "./markdown.ts";

/** A copy of the sources, documents and scripts, which a test may change. */
let root: string;

beforeAll(async () => {
  // Safe: scripts are plain JavaScript, and this is what the module exports.
  const { installPackage } = (await import(
    pathToFileURL(join(repository, "scripts/install.mjs")).href
  )) as { installPackage(folder: string, say: (line: string) => void): void };
  installPackage("scripts/api", () => {});
  root = realpathSync(mkdtempSync(join(tmpdir(), "keelson-reference-"))); // a link on macOS
  const tools = join("scripts", "api", "node_modules");
  for (const path of ["src", "docs", "package.json", "scripts"])
    cpSync(join(repository, path), join(root, path), {
      recursive: true,
      preserveTimestamps: true, // or the tools would count as out of date
      filter: (from) => !from.startsWith(join(repository, tools)),
    });
  mkdirSync(join(root, "scripts", "api"), { recursive: true });
  for (const path of ["node_modules", tools])
    symlinkSync(join(repository, path), join(root, path), "junction");
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

// `npm run check` compares the documents with the sources as they are. Each run of the check reads all sources: seconds.

test("without their rows, an option, an option object, a member of ctx and a code fail the check, with their pages", () => {
  const greeting =
    "  /** Greets the operator. Default: silence. */\n  readonly greeting?: string;\n";
  const changed = [
    change("src/hosts/container/run-container.ts", hostOption, hostOption + greeting),
    change(serverFile, serverType, greets("GreetOptions"), optionsOf("GreetOptions")),
    change(contextFile, database, `${database}  /** The mood. */\n  readonly mood: string;\n`),
    change(codesFile, thrown, '  throw new ConflictError("another_code");\n'),
  ];
  const pages = ["errors", "handlers", "hosts", "options"].map((page) => `docs/${page}.md`);
  const said = saidAfter(changed);
  expect(said).toContain("out of date; run npm run reference\n");
  expect(said.match(/docs\/\w+\.md/g)?.sort()).toEqual(pages);
});

test("an option without a comment fails the check, by its name", () => {
  const added = `${hostOption}  readonly greeting?: string;\n`;
  expect(saidAfter([change("src/hosts/container/run-container.ts", hostOption, added)])).toBe(
    "reference: options without a comment:\nContainerOptions: greeting\n",
  );
});

test("an option object whose name does not say what it is fails the check", () => {
  const changed = change(serverFile, serverType, greets("Greeting"), optionsOf("Greeting"));
  expect(saidAfter([changed])).toContain("keelson: Server: Greeting");
});

test("a code that is not a literal fails the check", () => {
  const unnamed = "  throw new ConflictError(String(id));\n";
  expect(saidAfter([change(codesFile, thrown, unnamed)])).toBe(
    `reference: ${codesFile}: the code String(id) is not a literal\n`,
  );
});

test("a variable without a row fails the check, and so does a row without a variable", () => {
  const file = "src/hosts/container/works.ts";
  const place = "function namedWorks";
  const read = 'export const mood = (env: Variables) => env["KEELSON_MOOD"];\n';
  expect(saidAfter([change(file, place, read + place)])).toBe(
    `reference: docs/hosts.md has no row of KEELSON_MOOD, which ${file} reads\n`,
  );
  const row = "| `NODE_ENV` |";
  const added = `| \`KEELSON_MOOD\` | the mood |\n${row}`;
  expect(saidAfter([change("docs/hosts.md", row, added)])).toBe(
    "reference: docs/hosts.md has a row of KEELSON_MOOD, which src/ does not read\n",
  );
});

const hostOption = "  readonly host?: string;\n";
const serverFile = "src/app/server/server.ts";
const serverType = "export interface Server {\n";
const contextFile = "src/app/handlers/pipeline-context.ts";
const database = "  readonly db: Database;\n";
const codesFile = "src/parts/config/operate/change.ts";
const thrown = '  throw new ConflictError("version_conflict");\n';

function greets(type: string): string {
  return `${serverType}  /** Greets. */\n  greet(given: ${type}): void;\n`;
}

function optionsOf(name: string): string {
  return `export interface ${name} {\n  /** A word. Default: none. */\n  readonly word?: string;\n}\n\n`;
}

interface Change {
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

/** Replaces a text of a file, and adds another at its end. */
function change(file: string, place: string, by: string, end = ""): Change {
  const path = join(root, file);
  const before = readFileSync(path, "utf8");
  if (!before.includes(place)) throw new Error(`${file} has no ${place}`);
  return { path, before, after: before.replace(place, () => by) + end };
}

/** What the check says of changed files; they are as they were after that. */
function saidAfter(changes: readonly Change[]): string {
  try {
    for (const { path, after } of changes) writeFileSync(path, after);
    const args = [join(root, "scripts/reference/main.mjs"), "--check"];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, {
      cwd: root,
      encoding: "utf8",
    });
    expect(status).toBe(1);
    return stdout + stderr;
  } finally {
    for (const { path, before } of changes) writeFileSync(path, before);
  }
}
