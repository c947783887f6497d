import { dirname, join } from "node:path";
import type { Plugin } from "vitest/config";

const root = join(import.meta.dirname, "../../..");
const here = (file: string) => join(import.meta.dirname, file);

/** The modules of `src/` that answers leave through, and what tests load in their place. */
const replaced = new Map([
  [join(root, "src/app/run/pipeline.ts"), here("pipeline.ts")],
  [join(root, "src/hosts/lambda-http/execution-mode.ts"), here("execution-mode.ts")],
]);
const replacements = new Set(replaced.values());

/** Has tests load, of the modules that answers leave through, those that hold each answer against its server's document. */
export const heldResponses: Plugin = {
  name: "held-responses",
  enforce: "pre",
  resolveId(source, importer) {
    if (importer === undefined || !source.startsWith(".") || replacements.has(importer))
      return null;
    return replaced.get(join(dirname(importer), source)) ?? null; // imports in this repository end in .ts
  },
};
