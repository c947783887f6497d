// Checks the length of each file and function in src/.
// `node scripts/sources.mjs [folder]` prints each finding and exits with 1 if there is one. Default folder: src/.
import { globSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { parseSync } from "rolldown/utils";
import { lineCounter } from "./lines.mjs";

/** Most lines of a file. */
const mostLines = 300;

/** Most lines of a function, those nested in it included. */
const mostFunctionLines = 100;

const [folder = join(import.meta.dirname, "..", "src")] = process.argv.slice(2);
const files = globSync("**/*.ts", { cwd: folder })
  .map((file) => file.split(sep).join("/"))
  .filter((file) => !file.endsWith(".test.ts"))
  .sort();

const found = [];
for (const file of files) {
  const text = readFileSync(join(folder, file), "utf8");
  const lineOf = lineCounter(text);
  const length = text.trimEnd().split("\n").length;
  if (length > mostLines) found.push(`${file} has ${length} lines, more than ${mostLines}`);
  const { program } = parseSync(file, text, { lang: "ts" });
  for (const { name, start, end } of functionsOf(program)) {
    const [first, last] = [lineOf(start), lineOf(end - 1)];
    const lines = last - first + 1;
    if (lines > mostFunctionLines)
      found.push(`${file}:${first} ${name} has ${lines} lines, more than ${mostFunctionLines}`);
  }
}
console.log(found.length === 0 ? "sources: clean" : found.join("\n"));
process.exitCode = found.length === 0 ? 0 : 1;

/** Returns each function with a body below a node. `parent` gives its name to an anonymous function. */
function functionsOf(node, parent) {
  const below = Object.values(node)
    .flat()
    .filter((child) => typeof child?.type === "string")
    .flatMap((child) => functionsOf(child, node));
  if (!/^(?:FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(node.type))
    return below;
  const { name = "a function" } = node.id ?? parent?.key ?? parent?.id ?? {};
  // The function of a method starts behind its name.
  const { start } = parent?.value === node ? parent : node;
  return [{ name, start, end: node.end }, ...below];
}
