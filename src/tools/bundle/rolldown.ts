import type { CodeSplittingGroup, InputOptions, OutputOptions, Plugin } from "rolldown";
import { builtinSource, isNodeModule } from "./builtins.ts";
import { type Chunks, divide, isSdk } from "./chunks.ts";
import { inlineHelpers } from "./inline-helpers.ts";

/**
 * Packages that keelson loads in a `try`, so a bundle may lack them. Rolldown leaves out those that it does not find, but with
 * Plug'n'Play it fails: a peer that is known and not installed is more to it than one that is not there.
 */
export const optionalPackages: readonly string[] = [
  "@aws-lambda-powertools/idempotency",
  "@aws-lambda-powertools/metrics",
  "@aws-sdk/client-sts",
  "dynalite",
  "prom-client",
];

/** A plugin, as Rolldown and Vite take it. Their types are not named, so that a project without them compiles. */
export interface RolldownPlugin {
  readonly name: string;
}

/**
 * Creates a plugin for Rolldown, and for Vite from version 8 (`vite build --ssr`), that bundles functions so that they start
 * fast: what a cold start reads is two files, what the entry imports and what the first request asks for. What else is
 * loaded lazily has files of its own. It sets what the build does not: ES modules named `.mjs`, minified, with all that is
 * imported in them. Of Node's own modules only the members that are used are made.
 *
 * @throws Error in Rollup, and with `codeSplitting: false`.
 * @example
 * ```ts
 * import { rolldownPlugin } from "keelson/bundle";
 * import { rolldown } from "rolldown";
 *
 * const build = await rolldown({ input: "src/lambda.ts", plugins: [rolldownPlugin()] });
 * await build.write({ dir: "dist" });
 * ```
 */
export function rolldownPlugin(): RolldownPlugin {
  let chunks: Chunks | undefined;
  const plugin: Plugin & VitePart = {
    name: "keelson",
    enforce: "pre", // before Vite leaves Node's modules outside
    config: viteDefaults,
    options(options) {
      if ("rolldownVersion" in this.meta) return inputDefaults(options);
      throw new Error(
        "keelson/bundle: rolldownPlugin() needs Rolldown or Vite 8, not Rollup; esbuild has esbuildPlugin()",
      );
    },
    outputOptions: (options) => outputDefaults(options, () => chunks),
    resolveId: {
      order: "pre",
      async handler(path, importer, { kind }) {
        if (optionalPackages.includes(path) && kind === "dynamic-import") {
          const found = await this.resolve(path, importer, { kind, skipSelf: true });
          return found === null ? { id: path, external: true } : undefined;
        }
        if (!isNodeModule(path)) return undefined;
        // The members are the importer's own, and go into its file: a start would make those that the SDK asks for later.
        const id = kind === "import-statement" ? `members:${path}?${importer}` : `whole:${path}`;
        return { id: `\0keelson-${id}`, moduleSideEffects: false };
      },
    },
    load: (id) => {
      const [, kind, path] = /^\0keelson-(members|whole):([^?]*)/.exec(id) ?? [];
      if (path === undefined) return undefined;
      return builtinSource(path, kind === "whole" ? "whole" : "members");
    },
    moduleParsed({ id }) {
      // As an entry, its modules are known by what is used of them.
      if (isSdk(id)) this.emitFile({ type: "chunk", id, name: "dynamodb-sdk" });
    },
    buildEnd() {
      chunks = divide(this.getModuleIds(), (id) => this.getModuleInfo(id));
    },
    generateBundle: (_options, bundle) => inlineHelpers(bundle),
  };
  return plugin;
}

/** Of a plugin for Vite, what Rolldown does not call. */
interface VitePart {
  readonly enforce: "pre";
  readonly config: (config: ViteConfig) => ViteConfig;
}

/** Of Vite's configuration, what is set here. */
interface ViteConfig {
  readonly build?: {
    readonly target?: unknown;
    readonly minify?: unknown;
    readonly rolldownOptions?: { readonly output?: OutputOptions | OutputOptions[] };
  };
  readonly ssr?: { readonly noExternal?: unknown };
}

/** Vite tells Rolldown all of its own defaults, so ours are set before they are. */
function viteDefaults({ build = {}, ssr = {} }: ViteConfig): ViteConfig {
  const { target = "node22", minify = true, rolldownOptions: { output = {} } = {} } = build;
  return {
    build: {
      target,
      minify,
      ...(Array.isArray(output) ? {} : { rolldownOptions: { output: { ...files, ...output } } }),
    },
    ssr: { noExternal: ssr.noExternal ?? true },
  };
}

function inputDefaults(options: InputOptions): InputOptions {
  return {
    platform: "node",
    preserveEntrySignatures: "allow-extension",
    ...options,
    transform: { target: "node22", ...options.transform },
    resolve: { mainFields: ["module", "main"], ...options.resolve }, // the packages' ES modules, of which what is not used is left out
  };
}

/** The files that are made. */
const files = {
  format: "esm",
  entryFileNames: "[name].mjs",
  chunkFileNames: "[name]-[hash].mjs",
  charset: "ascii", // one character beyond Latin-1 would have V8 hold the whole file in two bytes a character
  comments: { legal: false },
} as const;

function outputDefaults(options: OutputOptions, chunks: () => Chunks | undefined): OutputOptions {
  const { codeSplitting } = options;
  if (codeSplitting === false) {
    throw new Error(
      "keelson/bundle: codeSplitting is false, so a start would read all that is lazy; leave it out",
    );
  }
  const given = typeof codeSplitting === "object" ? codeSplitting : {};
  const groups: CodeSplittingGroup[] = [
    {
      name: (id) => chunks()?.start(id) ?? null,
      debugName: "start",
      tags: ["$initial"],
      includeDependenciesRecursively: false,
    },
    {
      name: "first",
      test: (id) => chunks()?.lazy(id) === "first" || id.startsWith("\0keelson-whole:"),
      includeDependenciesRecursively: false,
    },
    {
      name: "sdk",
      test: (id) => chunks()?.lazy(id) === "sdk",
      includeDependenciesRecursively: false,
    },
  ];
  return {
    minify: true,
    ...files,
    ...options,
    codeSplitting: { ...given, groups: [...(given.groups ?? []), ...groups] },
  };
}
