import { dirname, join } from "node:path";
import type { Plugin } from "vitest/config";
import type { Vitest } from "vitest/node";

const root = join(import.meta.dirname, "../..");

/** A module of `src/` in whose place tests load another one. */
export interface Replacement {
  /** Path from the root of the repository. */
  readonly module: string;
  /** Path from the root of the repository. It imports the module itself. */
  readonly by: string;
  /** The only file that gets it. Default: all. */
  readonly only?: string;
  readonly because: string;
}

/** Makes tests load one module in place of another, and prints this before they run. */
export function replacedModules(replacements: readonly Replacement[]): Plugin {
  const own = new Set(replacements.map(({ by }) => join(root, by)));
  const found = replacements.map(({ module, by, only }) => ({
    module: join(root, module),
    by: join(root, by),
    only: only && join(root, only),
  }));
  return {
    name: "keelson:replaced-modules",
    enforce: "pre",
    configureVitest: ({ vitest }: { readonly vitest: Vitest }) => say(vitest, replacements),
    resolveId(source, importer) {
      if (importer === undefined || !source.startsWith(".") || own.has(importer)) return null;
      const module = join(dirname(importer), source); // imports in this repository end in .ts
      const replaced = found.find(
        ({ module: path, only }) => path === module && (only ?? importer) === importer,
      );
      return replaced?.by ?? null;
    },
  };
}

const said = new WeakSet<Vitest>();

/** Each project has the plugin, but a run prints it once. */
function say(vitest: Vitest, replacements: readonly Replacement[]): void {
  if (said.has(vitest)) return;
  said.add(vitest);
  for (const { module, by, because } of replacements)
    vitest.logger.log(`${by} stands in for ${module}: ${because}`);
}
