// In a plain Node process, resolves imports of the package to its sources, so that tests do not need
// dist/: node --import ./test/support/keelson-sources.mjs examples/files/main.ts
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";

const root = new URL("../../", import.meta.url);
const { exports } = JSON.parse(readFileSync(new URL("package.json", root), "utf8"));

registerHooks({
  resolve(specifier, context, nextResolve) {
    const target = /^keelson(\/|$)/.test(specifier)
      ? exports[specifier.replace("keelson", ".")]?.default
      : undefined;
    if (target === undefined) return nextResolve(specifier, context);
    const source = target.replace("./dist/", "./src/").replace(/\.js$/, ".ts");
    return { url: new URL(source, root).href, shortCircuit: true };
  },
});
