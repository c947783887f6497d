// Bundles functions for Lambda so that they start fast: what `npm run package` and `npm run bench` have in common.
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import { rolldown } from "rolldown";

/**
 * Bundles a module of functions with what it imports. What is imported lazily (clients of the SDK, jose, idempotency) is read
 * when it is needed. A file of its own costs a millisecond, so what is read together is one file: what the entry imports, and what
 * the first request asks for.
 *
 * @param entry - the path of the module, by the name of its file in `outdir`.
 * @param groups - of what to know the size: `{ name, test }` of Rolldown.
 * @returns `{ files, apart }`, as Rolldown says them: the files, and what they would be if the groups had files of their own.
 */
export async function bundleFunctions({ entry, outdir, tsconfig, groups = [], sourcemap = false }) {
  const build = await rolldown({
    input: entry,
    platform: "node",
    tsconfig,
    transform: { target: "node22" },
    resolve: { mainFields: ["module", "main"] }, // the packages' ES modules, of which what is not used is left out
    preserveEntrySignatures: "allow-extension",
    plugins: [builtins],
    logLevel: "warn",
  });
  const options = {
    format: "esm",
    entryFileNames: "[name].mjs",
    chunkFileNames: "[name]-[hash].mjs",
    minify: true,
    charset: "ascii", // one character beyond Latin-1 would have V8 hold the whole file in two bytes a character
    comments: { legal: false },
  };
  const initial = groups.map((group) => ({ ...group, tags: ["$initial"] }));
  const { output: apart } = await build.generate({
    ...options,
    ...(groups.length === 0 ? {} : { codeSplitting: { includeDependenciesRecursively: false, groups: initial } }),
  });
  const first = modulesOf(apart, ({ facadeModuleId }) => firstRequest.test(facadeModuleId ?? ""));
  rmSync(outdir, { recursive: true, force: true });
  // What is in either imports nothing of a later one: files that import each other would not start.
  const { output: written } = await build.write({
    ...options,
    dir: outdir,
    sourcemap,
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [
        { name: "start", tags: ["$initial"], priority: 2 },
        // With the modules of Node's own that are asked for by `import()`: some bytes each.
        { name: "first", test: (id) => first.has(id) || id.startsWith("\0whole:"), priority: 1 },
      ],
    },
  });
  await build.close();
  for (const { fileName } of written.filter(({ isEntry, name }) => isEntry || name === "first")) {
    inlineHelpers(outdir, fileName, written);
  }
  return { files: written, apart };
}

/**
 * Rolldown's helpers are a file of their own, one more to find and to read at a cold start. What is read then gets a copy of
 * them, pure functions, in a line before its first; the import gives way to as many spaces, so that its source map holds but
 * for that line.
 */
function inlineHelpers(outdir, fileName, written) {
  const path = join(outdir, fileName);
  const text = readFileSync(path, "utf8");
  const found = /^import\{([^}]*)\}from"\.\/(rolldown-runtime-[^"]*)";/.exec(text);
  if (found === null) return;
  const [statement, names, helpersName] = found;
  const { code } = written.find((file) => file.fileName === helpersName);
  const [exported, exportedNames] = /export\{([^}]*)\};\s*$/.exec(code);
  const body = code.slice(0, -exported.length);
  const returned = exportedNames.replace(/([\w$]+) as ([\w$]+)/g, "$2:$1");
  const taken = names.replaceAll(" as ", ":");
  const line = `const{${taken}}=(()=>{${body}return{${returned}}})();`;
  writeFileSync(path, `${line}\n${" ".repeat(statement.length)}${text.slice(statement.length)}`);
  if (!existsSync(`${path}.map`)) return;
  const map = JSON.parse(readFileSync(`${path}.map`, "utf8"));
  writeFileSync(`${path}.map`, JSON.stringify({ ...map, mappings: `;${map.mappings}` }));
}

/** The files that are read with one: itself, and what it imports. */
export function readWith(files, isWanted) {
  const byName = new Map(files.map((file) => [file.fileName, file]));
  const read = new Set();
  const visit = (file) => {
    if (file === undefined || read.has(file)) return;
    read.add(file);
    for (const name of file.imports) visit(byName.get(name));
  };
  for (const file of files) if (file.type === "chunk" && isWanted(file)) visit(file);
  return [...read];
}

/** What every first request imports. */
const firstRequest = /\/(?:src|dist)\/(?:aws\/dynamodb-sdk|lambda\/http-events)\.[jt]s$/;

function modulesOf(files, isWanted) {
  return new Set(readWith(files, isWanted).flatMap(({ moduleIds }) => moduleIds));
}

/**
 * An `import` of a module of Node's own makes all of its lazy members, of `node:http` a whole HTTP client; asked for like
 * this it makes those that are used, which takes some 15 ms off a cold start. What `require` or `import()` asks for is the
 * module itself.
 */
const builtins = {
  name: "builtins",
  resolveId: (path, _importer, { kind }) => {
    if (!isBuiltin(path) || !path.startsWith("node:")) return undefined;
    return { id: `\0${kind === "import-statement" ? "members" : "whole"}:${path}`, moduleSideEffects: false };
  },
  load: (id) => {
    const [, kind, path] = /^\0(members|whole):(.*)$/.exec(id) ?? [];
    if (path === undefined) return undefined;
    const all = `const all = /* @__PURE__ */ process.getBuiltinModule(${JSON.stringify(path)});\n`;
    return kind === "whole" ? `${all}module.exports = all;` : `${all}${members(path)}export default all;`;
  },
};

function members(path) {
  const names = Object.keys(process.getBuiltinModule(path)).filter((name) => name !== "default");
  const exported = names.map((name, index) => {
    const text = JSON.stringify(name);
    return `const member${index} = /* @__PURE__ */ member(${text}); export { member${index} as ${text} };\n`;
  });
  return `const member = (name) => all[name];\n${exported.join("")}`;
}
