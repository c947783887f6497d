// Checks which way files of src/ import one another: no circles, no two folders that import each other,
// down the plan only, by names that this check can read, and the ambient store and some variables only where the plan allows it.
// `node scripts/layers.mjs [folder] [plan]` takes src/ and scripts/layers/plan.mjs by default; exits 1 where it finds anything.
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { findings } from "./layers/findings.mjs";
import { importsOf } from "./layers/imports.mjs";

const [
  folder = join(import.meta.dirname, "..", "src"),
  plan = join(import.meta.dirname, "layers", "plan.mjs"),
] = process.argv.slice(2);
const found = findings(importsOf(resolve(folder)), await import(pathToFileURL(resolve(plan)).href));
for (const { title, lines } of found)
  console.log([title, ...lines.map((line) => `  ${line}`)].join("\n"));
console.log(
  found.length === 0
    ? "layers: clean"
    : `layers: ${found.length} finding${found.length === 1 ? "" : "s"}`,
);
process.exitCode = found.length === 0 ? 0 : 1;
