import { mkdir, writeFile } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { dirname } from "node:path";
import type { BuildOptions, OutputFile, Plugin, PluginBuild } from "esbuild";
import { builtinSource } from "./builtins.ts";
import { marked } from "./chunks.ts";
import { mergeChunks } from "./merge-chunks.ts";
import { addIndex } from "./web-index.ts";

/** Plugin for esbuild, without esbuild's types, so that projects without esbuild compile. */
export interface EsbuildPlugin {
  readonly name: string;
  readonly setup: (build: object) => void;
}

/**
 * Creates a plugin for esbuild that bundles functions for fast cold starts. A cold start reads two
 * files: one with the entry's imports, one with the code that the first request loads. Other lazily
 * loaded code gets separate files. The plugin sets options that the build leaves out: minified,
 * split ES modules named `.mjs`, with all dependencies bundled. From Node's built-in modules, only
 * the members that are used are created. With an entry named `web`, the plugin also writes the
 * `index.js` that Lambda loads of a Web Function. The build needs an `outdir`.
 *
 * @example
 * ```ts
 * import { build } from "esbuild";
 * import { esbuildPlugin } from "keelson/bundle";
 *
 * await build({ entryPoints: ["src/lambda.ts"], outdir: "dist", plugins: [esbuildPlugin()] });
 * ```
 */
export function esbuildPlugin(): EsbuildPlugin {
  const plugin: Plugin = {
    name: "keelson",
    setup: (build) => {
      const wanted = setDefaults(build.initialOptions);
      addBuiltins(build);
      build.onEnd(async (result) => {
        const { metafile, outputFiles } = result;
        if (metafile === undefined || outputFiles === undefined) return; // the build failed
        const merged = await mergeChunks(build, { metafile, outputFiles }, wanted);
        addIndex(build.initialOptions, merged);
        const isWritten = wanted.write === true;
        if (isWritten) await writeFiles(merged.outputFiles);
        Object.assign(result, {
          metafile: wanted.metafile === true ? merged.metafile : undefined,
          outputFiles: isWritten ? undefined : merged.outputFiles,
        });
      });
    },
  };
  // Safe cast: esbuild calls `setup` with its own build object.
  return plugin as EsbuildPlugin;
}

/** Sets the options of the first pass and returns the options of the second pass. */
function setDefaults(options: BuildOptions): BuildOptions {
  options.bundle ??= true;
  options.splitting ??= true;
  options.format ??= "esm";
  options.platform ??= "node";
  options.target ??= "node22";
  // Prefers the ES modules of packages, so that unused code can be dropped.
  options.mainFields ??= ["module", "main"];
  options.outExtension = { ".js": ".mjs", ...options.outExtension };
  options.chunkNames = marked(options.chunkNames ?? "[name]-[hash]");
  const { banner = {}, footer = {}, metafile = false, sourcemap = false } = options;
  const { minify = true, write = true, legalComments = "none" } = options;
  const { minifyIdentifiers = minify, minifySyntax = minify, minifyWhitespace = minify } = options;
  Object.assign(options, {
    ...{ banner: {}, footer: {}, metafile: true, write: false, legalComments: "none" },
    ...{ minify: false, minifySyntax, minifyIdentifiers: false, minifyWhitespace: false },
    sourcemap: sourcemap === false ? false : "external",
  });
  return {
    ...{ banner, footer, metafile, write, sourcemap, legalComments },
    ...{ minifyIdentifiers, minifySyntax, minifyWhitespace },
  };
}

/**
 * Leaves `import()` of a built-in to the second pass, because the first would export only
 * `default`.
 */
function addBuiltins(build: PluginBuild) {
  build.onResolve({ filter: /^[a-z]/ }, ({ path, kind }) => {
    if (!isBuiltin(path)) return undefined;
    if (kind === "dynamic-import") return { path, external: true };
    const namespace = kind === "import-statement" ? "keelson-members" : "keelson-whole";
    return { path, namespace, sideEffects: false };
  });
  for (const kind of ["members", "whole"] as const)
    build.onLoad({ filter: /.*/, namespace: `keelson-${kind}` }, ({ path }) => ({
      contents: builtinSource(path, kind),
    }));
}

async function writeFiles(files: readonly OutputFile[]) {
  for (const { path, contents } of files) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, contents);
  }
}
