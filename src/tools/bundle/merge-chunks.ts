import { isBuiltin } from "node:module";
import { dirname, relative, resolve } from "node:path";
import type {
  BuildOptions,
  Metafile,
  OnResolveArgs,
  OnResolveResult,
  OutputFile,
  Plugin,
  PluginBuild,
} from "esbuild";
import { builtinSource } from "./builtins.ts";
import {
  type ChunkFile,
  type ChunkGroup,
  type Grouped,
  groupChunks,
  type Names,
} from "./chunks.ts";

interface Bundled {
  readonly metafile: Metafile;
  readonly outputFiles: OutputFile[];
}

/**
 * Bundles the output of the first pass again and merges files that are read together. esbuild
 * creates a file for anything that two lazy modules share and cannot group these files, although
 * each file costs a millisecond of a cold start. `options` apply only to the second pass.
 */
export async function mergeChunks(
  build: PluginBuild,
  made: Bundled,
  options: BuildOptions,
): Promise<Bundled> {
  const { absWorkingDir: folder = process.cwd(), outdir = "", ...given } = build.initialOptions;
  const {
    charset,
    logLevel,
    platform,
    sourcesContent,
    supported,
    target,
    outExtension = {},
  } = given;
  const extension = outExtension[".js"] as string; // safe cast: `esbuildPlugin` sets it
  const isScript = ([path]: readonly [string, unknown]) => path.endsWith(extension);
  const scripts = Object.fromEntries(Object.entries(made.metafile.outputs).filter(isScript));
  const textOf = textsOf(made.outputFiles);
  const awaiting = await awaitingFiles(
    build,
    made.outputFiles.filter(({ path }) => path.endsWith(extension)),
  );
  const { files, groups } = groupChunks(scripts, folder, textOf, (path) => awaiting.has(path));
  const grouped = new Set(groups.flatMap((group) => group.files));
  const single = files.filter((file) => !grouped.has(file));
  const named = (out: string) => relative(resolve(folder, outdir), out).slice(0, -extension.length);
  const { metafile, outputFiles } = await build.esbuild.build({
    ...set({ charset, logLevel, platform, sourcesContent, supported, target }),
    ...options,
    ...{ absWorkingDir: folder, outdir, outExtension },
    ...{ bundle: true, format: "esm", write: false, metafile: true },
    entryPoints: [
      ...groups.map(({ out }) => ({ in: `group:${out}`, out: named(out) })),
      ...single.map(({ path, out }) => ({ in: path, out: named(out) })),
    ],
    plugins: [merging({ files, groups }, textOf)],
  });
  const assets = made.outputFiles.filter(
    ({ path }) => !path.endsWith(extension) && !path.endsWith(`${extension}.map`),
  );
  outputFiles.push(...assets);
  return { metafile: metafileOf(metafile, made.metafile), outputFiles };
}

/** A conversion of an ES module to CommonJS fails if the module waits at its top level. */
async function awaitingFiles({ esbuild }: PluginBuild, files: readonly OutputFile[]) {
  const isAwaiting = ({ text }: OutputFile) =>
    esbuild.transform(text, { format: "cjs" }).then(
      () => false,
      () => true,
    );
  const suspects = files.filter(({ text }) => /\bawait\b/.test(text));
  const isAwaitings = await Promise.all(suspects.map(isAwaiting));
  return new Set(suspects.flatMap(({ path }, index) => (isAwaitings[index] ? [path] : [])));
}

/** Drops options that are `undefined`, because esbuild rejects them. */
function set(
  options: { readonly [Name in keyof BuildOptions]: BuildOptions[Name] | undefined },
): BuildOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/**
 * The plugin of the second pass resolves imports like this:
 *
 * | imported file | by a file of the same group | by other files |
 * |---|---|---|
 * | a file of a group | is bundled | becomes a module that re-exports under the original names |
 * | a file of a group, by `import()` | is the group's file | is the group's file, same names |
 * | another file | stays a separate file | stays a separate file |
 */
function merging({ files, groups }: Grouped, textOf: (path: string) => string): Plugin {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const groupOf = new Map(
    groups.flatMap((group) => group.files.map((file) => [file.path, group] as const)),
  );
  const byOut = new Map(groups.map((group) => [group.out, group]));
  // Safe casts: callers pass only the paths of bundled files and the outputs of groups.
  const outOf = (path: string) => (groupOf.get(path) ?? (byPath.get(path) as ChunkFile)).out;
  const groupAt = (out: string) => byOut.get(out) as ChunkGroup;
  const find = (args: OnResolveArgs): OnResolveResult => {
    const { path, kind, importer, namespace, resolveDir } = args;
    if (kind === "entry-point")
      return path.startsWith("group:") ? { path: path.slice(6), namespace: "group" } : { path };
    if (kind === "dynamic-import" && isBuiltin(path)) return { path, namespace: "builtin" };
    const file = byPath.get(resolve(resolveDir, path));
    if (file === undefined || namespace === "names") return { path, external: true };
    const group = groupOf.get(file.path);
    const isOwn = namespace === "group" || (group !== undefined && group === groupOf.get(importer));
    if (isOwn && kind !== "dynamic-import") return { path: file.path };
    const target = importPath(outOf(importer), outOf(file.path));
    if (group === undefined || kind === "dynamic-import") return { path: target, external: true };
    const names = group.namesOf(file).map(([name, given]) => [given, name] as const);
    const pluginData = reexport(target, names);
    return { path: `${target} ${file.path}`, namespace: "names", pluginData };
  };
  return {
    name: "keelson-merge",
    setup: (build) => {
      build.onResolve({ filter: /.*/ }, find);
      build.onLoad({ filter: /.*/, namespace: "file" }, ({ path }) => ({
        contents: textOf(path),
        resolveDir: dirname(path),
      }));
      build.onLoad({ filter: /.*/, namespace: "group" }, ({ path }) => {
        const group = groupAt(path);
        const all = group.files.map((file) => reexport(file.path, group.namesOf(file)));
        return { contents: all.join(""), resolveDir: dirname(path) };
      });
      build.onLoad({ filter: /.*/, namespace: "builtin" }, ({ path }) => ({
        contents: builtinSource(path, "whole"),
      }));
      build.onLoad({ filter: /.*/, namespace: "names" }, ({ pluginData }) => ({
        contents: String(pluginData), // as `find` sets it
      }));
    },
  };
}

function reexport(path: string, names: Names) {
  const texts = names.map((pair) => pair.map((name) => JSON.stringify(name)).join(" as "));
  const from = JSON.stringify(path);
  return `import ${from};\nexport { ${texts.join(", ")} } from ${from};\n`;
}

function importPath(from: string, to: string) {
  const path = relative(dirname(from), to).replaceAll("\\", "/");
  return path.startsWith(".") ? path : `./${path}`;
}

function textsOf(files: readonly OutputFile[]) {
  const byPath = new Map(files.map((file) => [file.path, file]));
  return (path: string) => {
    const { text } = byPath.get(path) as OutputFile; // safe cast: the first pass created it
    const map = byPath.get(`${path}.map`);
    if (map === undefined) return text;
    const encoded = Buffer.from(map.contents).toString("base64");
    return `${text}\n//# sourceMappingURL=data:application/json;base64,${encoded}`;
  };
}

/** Lists the application's modules as inputs, not the files of the first pass. */
function metafileOf({ outputs }: Metafile, made: Metafile): Metafile {
  const named = Object.entries(outputs).map(([path, output]) => {
    const files = Object.keys(output.inputs).flatMap((input) => made.outputs[input] ?? []);
    const entryPoint = files.find((file) => file.entryPoint !== undefined)?.entryPoint;
    const { entryPoint: _, ...rest } = output;
    const inputs = Object.assign({}, ...files.map((file) => file.inputs));
    return [path, { ...rest, inputs, ...(entryPoint && { entryPoint }) }] as const;
  });
  return { inputs: made.inputs, outputs: Object.fromEntries(named) };
}
