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

test("the documents are those of the sources", () => {
  expect(check()).toEqual({ status: 0, said: "" });
});

test("an option without its row fails the check", () => {
  const file = "src/hosts/container/run-container.ts";
  const added = "  /** Greets the operator. Default: silence. */\n  readonly greeting?: string;\n";
  const said = whileChanged(file, "  readonly host?: string;\n", added);
  expect(said).toBe("reference: docs/hosts.md: out of date; run npm run reference\n");
});

test("an option without a comment fails the check, by its name", () => {
  const file = "src/hosts/container/run-container.ts";
  const said = whileChanged(file, "  readonly host?: string;\n", "  readonly greeting?: string;\n");
  expect(said).toBe("reference: options without a comment:\nContainerOptions: greeting\n");
});

test("an option object without a table fails the check, and so does one whose name does not say what it is", () => {
  const file = "src/app/server/server.ts";
  const place = "export interface Server {\n";
  const method = (type: string) => `  /** Greets. */\n  greet(given: ${type}): void;\n`;
  const source = readFileSync(join(root, file), "utf8");
  const greeting = (name: string) =>
    `export interface ${name} {\n  /** A word. Default: none. */\n  readonly word?: string;\n}\n\n`;
  expect(source).toContain(place);
  const added = (name: string) => whileChanged(file, place, method(name), "behind", greeting(name));
  expect(added("GreetOptions")).toContain("docs/options.md: out of date");
  expect(added("Greeting")).toContain("keelson: Server: Greeting");
});

test("a member of ctx without its row fails the check", () => {
  const file = "src/app/handlers/pipeline-context.ts";
  const added = "  /** The mood of the caller. */\n  readonly mood: string;\n";
  const said = whileChanged(file, "  readonly db: Database;\n", added);
  expect(said).toContain("docs/handlers.md: out of date");
});

test("a code without its row fails the check, and so does one that the types do not name", () => {
  const file = "src/parts/config/operate/change.ts";
  const thrown = '  throw new ConflictError("version_conflict");\n';
  const another = whileChanged(file, thrown, '  throw new ConflictError("another_code");\n');
  expect(another).toContain("docs/errors.md: out of date");
  const unnamed = whileChanged(file, thrown, "  throw new ConflictError(String(id));\n");
  expect(unnamed).toBe(`reference: ${file}: the code String(id) is not a literal\n`);
});

test("a variable without a row fails the check, and so does a row without a variable", () => {
  const file = "src/hosts/container/works.ts";
  const place = "function namedWorks";
  const read = 'export const mood = (env: Variables) => env["KEELSON_MOOD"];\n';
  expect(whileChanged(file, place, read, "before")).toBe(
    `reference: docs/hosts.md has no row of KEELSON_MOOD, which ${file} reads\n`,
  );
  const row = "| `KEELSON_MOOD` | the mood |\n";
  expect(whileChanged("docs/hosts.md", "| `NODE_ENV` |", row, "before")).toBe(
    "reference: docs/hosts.md has a row of KEELSON_MOOD, which src/ does not read\n",
  );
});

/** What the check says after a text has been added behind, or before, another; the file is as it was after that. */
function whileChanged(
  file: string,
  place: string,
  added: string,
  where = "behind",
  end = "",
): string {
  const path = join(root, file);
  const before = readFileSync(path, "utf8");
  if (!before.includes(place)) throw new Error(`${file} has no ${place}`);
  try {
    writeFileSync(
      path,
      before.replace(place, () => (where === "behind" ? place + added : added + place)) + end,
    );
    const { status, said } = check();
    expect(status).toBe(1);
    return said;
  } finally {
    writeFileSync(path, before);
  }
}

function check(): { status: number | null; said: string } {
  const args = [join(root, "scripts/reference/main.mjs"), "--check"];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: root,
    encoding: "utf8",
  });
  return { status, said: stdout + stderr };
}
