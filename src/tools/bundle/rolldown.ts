import { isBuiltin } from "node:module";
import type { CodeSplittingGroup, InputOptions, OutputOptions, Plugin } from "rolldown";
import { type BuiltinKind, builtinSource } from "./builtins.ts";
import { type Chunks, divide, isSdk } from "./chunks.ts";
import { hasTopLevelAwait } from "./top-level-await.ts";
import { indexName, indexText, webEntry } from "./web-index.ts";

/**
 * Packages that keelson loads in a `try`, so a bundle may omit them. Rolldown leaves out packages
 * that it cannot find. With Plug'n'Play it fails instead, because a declared peer dependency that
 * is not installed is an error there.
 */
export const optionalPackages: readonly string[] = [
  "@aws-lambda-powertools/idempotency",
  "@aws-lambda-powertools/metrics",
  "@aws-sdk/client-sts",
  "dynalite",
  "prom-client",
];

/** Plugin for Rolldown and Vite, without their types, so that projects without them compile. */
export interface RolldownPlugin {
  readonly name: string;
}

/**
 * Creates a plugin for Rolldown, and for Vite 8 or later (`vite build --ssr`), that bundles
 * functions for fast cold starts. A cold start reads two files: one with the entry's imports, one
 * with the code that the first request loads. Rolldown adds a file of less than 1 KB for its own
 * helpers. Other lazily loaded code gets separate files. The plugin sets options that the build
 * leaves out: minified ES modules named `.mjs`, with all dependencies bundled. From Node's built-in
 * modules, only the members that are used are created. With an entry named `web`, the plugin also
 * writes the `index.js` that Lambda loads of a Web Function.
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
  const plugin: Plugin & { enforce: "pre"; config: typeof viteDefaults } = {
    name: "keelson",
    enforce: "pre", // before Vite marks Node's modules as external
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
        if (!isBuiltin(path)) return undefined;
        // Each importer gets its own copy of the members, in its own file. With a shared copy, a
        // cold start would also create the members that the SDK needs later.
        const id = kind === "import-statement" ? `members:${path}?${importer}` : `whole:${path}`;
        return { id: `\0keelson-${id}`, moduleSideEffects: false };
      },
    },
    load: (id) => {
      // Safe cast below: the pattern matches only the two kinds.
      const [, kind, path] = /^\0keelson-(members|whole):([^?]*)/.exec(id) ?? [];
      if (path === undefined) return undefined;
      return builtinSource(path, kind as BuiltinKind);
    },
    moduleParsed({ id }) {
      // As an entry, the module shows the bundler which of its dependencies are used.
      if (isSdk(id)) this.emitFile({ type: "chunk", id, name: "dynamodb-sdk" });
    },
    buildEnd() {
      const infoOf = (id: string) => this.getModuleInfo(id);
      chunks = divide(this.getModuleIds(), infoOf, (id) =>
        hasTopLevelAwait(infoOf(id)?.code, this.parse),
      );
    },
    generateBundle(_options, bundle) {
      const web = Object.values(bundle).find(
        (file) => file.type === "chunk" && file.isEntry && file.name === webEntry,
      );
      if (web === undefined || indexName in bundle) return;
      // No asset, which Vite would leave out of a build for servers.
      this.emitFile({
        type: "prebuilt-chunk",
        fileName: indexName,
        code: indexText(web.fileName),
      });
    },
  };
  return plugin;
}

interface ViteConfig {
  readonly build?: {
    readonly target?: unknown;
    readonly minify?: unknown;
    readonly rolldownOptions?: { readonly output?: OutputOptions | OutputOptions[] };
  };
  readonly ssr?: { readonly noExternal?: unknown };
}

/** Sets defaults before Vite passes its own to Rolldown. */
function viteDefaults({ build = {}, ssr = {} }: ViteConfig): ViteConfig {
  const { target = "node22", minify = true, rolldownOptions: { output = {} } = {} } = build;
  const rolldown = !Array.isArray(output) && {
    rolldownOptions: { output: { ...files, ...output } },
  };
  return {
    build: { target, minify, ...rolldown },
    ssr: { noExternal: ssr.noExternal ?? true },
  };
}

function inputDefaults(options: InputOptions): InputOptions {
  return {
    platform: "node",
    preserveEntrySignatures: "allow-extension",
    ...options,
    transform: { target: "node22", ...options.transform },
    // Prefers the ES modules of packages, so that unused code can be dropped.
    resolve: { mainFields: ["module", "main"], ...options.resolve },
  };
}

const files = {
  format: "esm",
  entryFileNames: "[name].mjs",
  chunkFileNames: "[name]-[hash].mjs",
  // A single character beyond Latin-1 makes V8 store the whole file with two bytes per character.
  charset: "ascii",
  comments: { legal: false },
} as const;

function outputDefaults(options: OutputOptions, chunks: () => Chunks | undefined): OutputOptions {
  const { codeSplitting } = options;
  if (codeSplitting === false)
    throw new Error(
      "keelson/bundle: codeSplitting is false, so a start would read all that is lazy; leave it out",
    );
  const given = typeof codeSplitting === "object" ? codeSplitting : {};
  const isLazy = (name: string) => (id: string) => chunks()?.lazy(id) === name;
  const isFirst = isLazy("first");
  const own: CodeSplittingGroup[] = [
    { name: (id) => chunks()?.start(id) ?? null, debugName: "start", tags: ["$initial"] },
    { name: "first", test: (id) => isFirst(id) || id.startsWith("\0keelson-whole:") },
    { name: "sdk", test: isLazy("sdk") },
  ];
  const groups = own.map((group) => ({ ...group, includeDependenciesRecursively: false }));
  return {
    minify: true,
    ...files,
    ...options,
    codeSplitting: { ...given, groups: [...(given.groups ?? []), ...groups] },
  };
}
