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

test("options without a comment or of another name, codes that are not literals, and variables fail it together", () => {
  const changed = [
    change(
      "src/hosts/container/run-container.ts",
      hostOption,
      `${hostOption}  readonly greeting?: string;\n`,
    ),
    change(serverFile, serverType, greets("Greeting"), optionsOf("Greeting")),
    change(codesFile, thrown, "  throw new ConflictError(String(id));\n"),
    change(variablesFile, "function namedWorks", `${mood}function namedWorks`),
    change("docs/hosts.md", "| `NODE_ENV` |", "| `KEELSON_GLOOM` | the mood |\n| `NODE_ENV` |"),
  ];
  expect(saidAfter(changed).split("\n")).toEqual([
    "reference: options of another name than scripts/reference knows:",
    "keelson: Server: Greeting",
    "options without a comment:",
    "ContainerOptions: greeting",
    `${codesFile}: the code String(id) is not a literal`,
    `docs/hosts.md has no row of KEELSON_MOOD, which ${variablesFile} reads`,
    "docs/hosts.md has a row of KEELSON_GLOOM, which src/ does not read",
    "",
  ]);
});

const hostOption = "  readonly host?: string;\n";
const serverFile = "src/app/server/server.ts";
const serverType = "export interface Server {\n";
const contextFile = "src/app/handlers/pipeline-context.ts";
const database = "  readonly db: Database;\n";
const codesFile = "src/parts/config/operate/change.ts";
const thrown = '  throw new ConflictError("version_conflict");\n';

const variablesFile = "src/hosts/container/works.ts";
const mood = 'export const mood = (env: Variables) => env["KEELSON_MOOD"];\n';

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
