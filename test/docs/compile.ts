import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { type CodeBlock, codeBlocks, documents, placeOf, root, textOf } from "./markdown.ts";

/** Code blocks, written to files below the repository, where they find its packages. */
export interface WrittenBlocks {
  readonly directory: string;
  readonly files: readonly { readonly path: string; readonly block: CodeBlock }[];
  remove(): void;
}

/** Files that a document's reader creates with a command, by their names there. */
const made: Readonly<Record<string, readonly [name: string, path: string]>> = {
  "docs/client.md": ["api.d.ts", "test/fixtures/files-api.d.ts"],
};

/**
 * Writes each block to a file. A block whose first line is a comment such as `// files.ts` has that name, and
 * the other blocks of its document can import it. If the document lacks an imported file, the document continues
 * the example of the first linked page that has a file of this name.
 *
 * @throws Error if two blocks of a document have the same name.
 */
export function writeBlocks(blocks: readonly CodeBlock[]): WrittenBlocks {
  mkdirSync(join(root, ".keelson"), { recursive: true, mode: 0o700 }); // git ignores it
  const directory = mkdtempSync(join(root, ".keelson", "docs-check-"));
  const files = blocks.map((block) => {
    const folder = join(directory, block.document.replaceAll("/", "-"));
    mkdirSync(folder, { recursive: true });
    const [name, source] = made[block.document] ?? [];
    if (name !== undefined && source !== undefined)
      copyFileSync(join(root, source), join(folder, name));
    const path = join(folder, nameOf(block) ?? `line-${block.line}.ts`);
    try {
      writeFileSync(path, `${block.code}\n`, { flag: "wx" });
    } catch (cause) {
      throw new Error(
        `${placeOf(block)}: another block of the document is called ${nameOf(block)}`,
        { cause },
      );
    }
    return { path, block };
  });
  for (const { path, block } of files) addImported(block, dirname(path));
  return { directory, files, remove: () => rmSync(directory, { recursive: true, force: true }) };
}

/** Writes the files that a block imports from a linked page next to it, and their imports. */
function addImported({ code, document }: CodeBlock, folder: string): void {
  for (const [, name = ""] of code.matchAll(/ from "\.\/([\w.-]+\.ts)"/g)) {
    const path = join(folder, name);
    const block = existsSync(path) ? undefined : linkedBlock(document, name);
    if (block === undefined) continue; // what is missing, the compiler reports
    writeFileSync(path, `${block.code}\n`);
    addImported(block, folder);
  }
}

function linkedBlock(document: string, name: string): CodeBlock | undefined {
  const links = [...textOf(document).matchAll(/\]\(([\w-]+\.md)/g)].map(
    ([, page]) => `docs/${page}`,
  );
  const linked = links.filter((page) => documents.includes(page));
  return linked
    .flatMap((page) => codeBlocks(page, textOf(page)))
    .find((block) => nameOf(block) === name);
}

/** The name that a block gives itself in its first line. */
export function nameOf({ code }: Pick<CodeBlock, "code">): string | undefined {
  return /^\/\/ ([\w.-]+\.ts)\n/.exec(code)?.[1];
}

/** Compiles the blocks as strictly as the repository is compiled; each error names document and line. */
export async function compileErrors({ directory, files }: WrittenBlocks): Promise<string[]> {
  const config = join(directory, "tsconfig.json");
  writeFileSync(
    config,
    JSON.stringify({
      extends: relative(directory, join(root, "tsconfig.json")).replaceAll("\\", "/"),
      compilerOptions: { moduleDetection: "force" },
      include: [],
      files: files.map(({ path }) => path),
    }),
  );
  const compiler = join(
    dirname(createRequire(import.meta.url).resolve("typescript/package.json")),
    "bin",
    "tsc",
  );
  const child = spawn(process.execPath, [compiler, "-p", config, "--pretty", "false"], {
    cwd: directory,
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  const [exitCode] = await once(child, "close");
  const lines = output.split("\n").filter((line) => line.trim() !== "");
  if (exitCode !== 0 && lines.length === 0) return [`the compiler exited with ${exitCode}`];
  return lines.map((line) => located(line, directory, files));
}

/** `line-7.ts(2,1): error …` becomes `README.md:8: error …`; lines about other files stay unchanged. */
function located(line: string, directory: string, files: WrittenBlocks["files"]): string {
  const [, path = "", row, message] = /^(.+?)\((\d+),\d+\): (.*)$/.exec(line) ?? [];
  const block = files.find(
    (file) => file.path === join(directory, path) || file.path === path,
  )?.block;
  return block === undefined
    ? line
    : `${placeOf({ document: block.document, line: block.line + Number(row) - 1 })}: ${message}`;
}
