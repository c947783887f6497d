import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { BuildOptions, OutputFile, Plugin, PluginBuild } from "esbuild";
import { builtinSource, isNodeModule } from "./builtins.ts";
import { marked } from "./chunk-groups.ts";
import { mergeChunks } from "./merge-chunks.ts";

/** A plugin, as esbuild takes it. Its types are not named, so that a project without it compiles. */
export interface EsbuildPlugin {
  readonly name: string;
  readonly setup: (build: object) => void;
}

/**
 * Creates a plugin for esbuild that bundles functions so that they start fast: what a cold start reads is two files, what the
 * entry imports and what the first request asks for. What else is loaded lazily has files of its own. It sets what the build
 * does not: ES modules named `.mjs`, minified, split, with all that is imported in them. Of Node's own modules only the
 * members that are used are made. The build needs an `outdir`.
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
        if (metafile === undefined || outputFiles === undefined) return; // there are errors
        const merged = await mergeChunks(build, { metafile, outputFiles }, wanted);
        const isWritten = wanted.write === true;
        if (isWritten) await writeFiles(merged.outputFiles);
        Object.assign(result, {
          metafile: wanted.metafile === true ? merged.metafile : undefined,
          outputFiles: isWritten ? undefined : merged.outputFiles,
        });
      });
    },
  };
  // Safe: esbuild calls it with its own build.
  return plugin as EsbuildPlugin;
}

/** Sets what the build is not told, for the first of its two passes, and returns what the second is to do. */
function setDefaults(options: BuildOptions): BuildOptions {
  options.bundle ??= true;
  options.splitting ??= true; // what is lazy has files of its own
  options.format ??= "esm";
  options.platform ??= "node";
  options.target ??= "node22";
  options.mainFields ??= ["module", "main"]; // the packages' ES modules, of which what is not used is left out
  options.outExtension = { ".js": ".mjs", ...options.outExtension };
  options.chunkNames = marked(options.chunkNames ?? "[name]-[hash]");
  const {
    banner = {},
    footer = {},
    metafile = false,
    minify = true,
    sourcemap = false,
    write = true,
  } = options;
  const {
    legalComments = "none",
    minifyIdentifiers = minify,
    minifySyntax = minify,
    minifyWhitespace = minify,
  } = options;
  Object.assign(options, { banner: {}, footer: {}, metafile: true, minify: false, write: false });
  Object.assign(options, {
    minifySyntax,
    minifyIdentifiers: false,
    minifyWhitespace: false,
    legalComments: "none",
  });
  options.sourcemap = sourcemap === false ? false : "external";
  return {
    banner,
    footer,
    metafile,
    write,
    sourcemap,
    legalComments,
    minifyIdentifiers,
    minifySyntax,
    minifyWhitespace,
  };
}

/** What `import()` asks for is left to the second pass, which makes no file of it: the first would give `default` alone. */
function addBuiltins(build: PluginBuild): void {
  build.onResolve({ filter: /^[a-z]/ }, ({ path, kind }) => {
    if (!isNodeModule(path)) return undefined;
    if (kind === "dynamic-import") return { path, external: true };
    return {
      path,
      namespace: kind === "import-statement" ? "keelson-members" : "keelson-whole",
      sideEffects: false,
    };
  });
  build.onLoad({ filter: /.*/, namespace: "keelson-members" }, ({ path }) => ({
    contents: builtinSource(path, "members"),
  }));
  build.onLoad({ filter: /.*/, namespace: "keelson-whole" }, ({ path }) => ({
    contents: builtinSource(path, "whole"),
  }));
}

async function writeFiles(files: readonly OutputFile[]): Promise<void> {
  for (const { path, contents } of files) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, contents);
  }
}
