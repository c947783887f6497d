// Builds dist/ from src/. The TypeScript compiler writes into another folder, then each file replaces its predecessor. A process
// that imports from dist/ during the build finds every file complete, like another build. A build that fails does not
// change dist/. To save space, dist/ contains only declarations that an entry point reaches, and no code of modules with only types.
import { spawnSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const root = join(import.meta.dirname, "..");
const tsc = join(
  dirname(createRequire(import.meta.url).resolve("typescript/package.json")),
  "bin",
  "tsc",
);
const biome = createRequire(import.meta.url).resolve("@biomejs/biome/bin/biome");
const prefix = ".dist-";
/** Age of a folder whose build was killed. */
const leftOverMs = 600_000;

for (const name of readdirSync(root).filter((name) => name.startsWith(prefix))) {
  const path = join(root, name);
  const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() };
  if (Date.now() - mtimeMs > leftOverMs) rmSync(path, { recursive: true, force: true });
}
const built = mkdtempSync(join(root, prefix)); // in the same file system as dist/, or it could not be renamed
try {
  const command = [tsc, "-p", join(root, "tsconfig.build.json"), "--outDir", built];
  const { status } = spawnSync(process.execPath, command, { stdio: "inherit" });
  if (status === 0) {
    removeUnreached(built);
    removeDocumentation(built);
    removeCodeOfTypes(built);
    markOptional(built);
    indentByTabs(built);
    await replace(join(root, "dist"), built);
  }
  process.exitCode = status ?? 1;
} finally {
  rmSync(built, { recursive: true, force: true });
}

/** Removes declarations that cannot be imported, because no entry point leads to them. */
function removeUnreached(folder) {
  const { exports = {} } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const reached = new Set();
  const reach = (file) => {
    if (reached.has(file)) return;
    reached.add(file);
    const imports = readFileSync(file, "utf8").matchAll(
      /\b(?:from|import)\s*\(?\s*"(\.[^"]+)\.ts"/g,
    );
    for (const [, path] of imports) reach(join(dirname(file), `${path}.d.ts`));
  };
  for (const { types } of Object.values(exports))
    if (types !== undefined) reach(join(folder, types.replace("./dist/", "")));
  for (const name of filesOf(folder)) {
    if (name.endsWith(".d.ts") && !reached.has(join(folder, name))) rmSync(join(folder, name));
  }
}

/** Removes comments from the code, which every start would read. The declarations keep them. */
function removeDocumentation(folder) {
  for (const name of filesOf(folder).filter((file) => file.endsWith(".js"))) {
    const path = join(folder, name);
    writeFileSync(
      path,
      readFileSync(path, "utf8").replace(/^[ \t]*\/\*\*[\s\S]*?\*\/[ \t]*\n/gm, ""),
    );
  }
}

/** Removes the code of modules that declare only types, unless other code or an entry point imports it. */
function removeCodeOfTypes(folder) {
  const { exports = {} } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const code = filesOf(folder).filter((file) => file.endsWith(".js"));
  const texts = new Map(
    code.map((name) => [join(folder, name), readFileSync(join(folder, name), "utf8")]),
  );
  const asked = new Set(
    Object.values(exports).map(({ default: file = "" }) =>
      join(folder, file.replace("./dist/", "")),
    ),
  );
  for (const [path, text] of texts) {
    for (const [, name] of text.matchAll(/\b(?:from|import)\s*\(?\s*"(\.[^"]+)"/g))
      asked.add(join(dirname(path), name));
  }
  for (const [path, text] of texts)
    if (text.trim() === "export {};" && !asked.has(path)) rmSync(path);
}

/**
 * Makes the types of an optional package optional. Without the package, types that use them are `any`; otherwise a check of
 * declarations (`skipLibCheck: false`) would fail in projects that import `keelson/middy`.
 */
function markOptional(folder) {
  for (const name of filesOf(folder).filter((file) => /^hosts\/claim-layer.*\.d\.ts$/.test(file))) {
    const path = join(folder, name);
    const text = readFileSync(path, "utf8");
    const marked = text.replace(
      /^(?=import .* from "@aws-lambda-powertools\/idempotency)/gm,
      "// @ts-ignore -- optional\n",
    );
    if (marked !== text) writeFileSync(path, marked);
  }
}

/** The compiler indents by four spaces, which are a twelfth of an installation's code. */
function indentByTabs(folder) {
  const config = join(import.meta.dirname, "dist-format.json");
  const command = [biome, "format", "--write", `--config-path=${config}`, "--log-level=error"];
  const { status, stdout, stderr } = spawnSync(process.execPath, [...command, "."], {
    cwd: folder,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`the code could not be formatted: ${stdout}${stderr}`);
}

/** Makes a folder equal to another: first adds new files, last deletes old ones, and leaves equal files unchanged. */
async function replace(folder, fresh) {
  mkdirSync(folder, { recursive: true });
  const names = filesOf(fresh);
  const before = new Set(filesOf(folder));
  const changed = names.filter(
    (name) => before.has(name) && !isSame(join(folder, name), join(fresh, name)),
  );
  for (const name of [...names.filter((name) => !before.has(name)), ...changed]) {
    await move(join(fresh, name), join(folder, name));
  }
  const kept = new Set(names);
  for (const name of before) {
    if (kept.has(name)) continue;
    rmSync(join(folder, name), { force: true });
    removeEmpty(folder, dirname(name));
  }
}

function filesOf(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

function isSame(one, other) {
  try {
    return readFileSync(one).equals(readFileSync(other));
  } catch (error) {
    if (error.code === "ENOENT") return false; // another build has taken it away
    throw error;
  }
}

/** On Windows, a file that a process is reading cannot be replaced; and another build may delete the folder. */
async function move(from, to) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      mkdirSync(dirname(to), { recursive: true });
      renameSync(from, to);
      return;
    } catch (error) {
      if (!["EPERM", "EACCES", "EBUSY", "ENOENT"].includes(error.code) || attempt === 50)
        throw error;
    }
    await delay(100);
  }
}

function removeEmpty(folder, name) {
  try {
    for (let at = name; at !== "."; at = dirname(at)) rmdirSync(join(folder, at));
  } catch {
    // It is not empty, or another build has deleted it.
  }
}
