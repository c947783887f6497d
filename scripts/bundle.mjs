// Bundles functions for Lambda so that they start fast: what `npm run package` and `npm run bench` have in common.
import { rmSync } from "node:fs";
import { isBuiltin } from "node:module";
import { rolldown } from "rolldown";

/**
 * Bundles a module of functions with what it imports. What is imported lazily (clients of the SDK, jose, idempotency) is read
 * when it is needed. A file of its own costs 0.2 ms, so what is read together is one file: what the entry imports, and what
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
        { name: "first", test: (id) => first.has(id), priority: 1 },
      ],
    },
  });
  await build.close();
  return { files: written, apart };
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
const firstRequest = /\/(?:src|dist)\/(?:aws\/dynamodb-sdk|lambda\/(?:create-runtime|http-function))\.[jt]s$/;

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
