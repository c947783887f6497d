// Checks how the sources in src/ read: the length of each file and function, and the English of the comments.
// `node scripts/sources.mjs [folder]` prints each finding and exits with 1 if there is one. Default folder: src/.
import { globSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { parseSync } from "rolldown/utils";

/** Most lines of a file. */
const mostLines = 300;

/** Most lines of a function, those nested in it included. */
const mostFunctionLines = 100;

/** Most comments in the folder that open with a question word. */
const mostQuestions = 100;
const question = /^(?:What|Who|Whose|Where|How)\b/;

/** Phrases of translated English, each with its replacement. */
const dialect = [
  [/\bis none\b/, "there is no ..."],
  [/\bmended\b/, "fixed"],
  [/\blets? (?:\w+ ){0,2}run\b/i, "runs"],
  [/\bwhoever\b/i, "the caller, the process ..."],
  [/(?:^|[.:;] )Who (?!is |are |was |has |can |may )/, "a noun"],
  [/\b(?:by|of|for|to|from|with|than) who\b/, "a noun"],
];

const [folder = join(import.meta.dirname, "..", "src")] = process.argv.slice(2);
const files = globSync("**/*.ts", { cwd: folder })
  .map((file) => file.split(sep).join("/"))
  .filter((file) => !file.endsWith(".test.ts"))
  .sort();

const found = [];
const questions = [];
for (const file of files) {
  const text = readFileSync(join(folder, file), "utf8");
  const lineOf = lineCounter(text);
  const length = text.trimEnd().split("\n").length;
  if (length > mostLines) found.push(`${file} has ${length} lines, more than ${mostLines}`);
  const { program, comments } = parseSync(file, text, { lang: "ts" });
  for (const { name, start, end } of functionsOf(program)) {
    const [first, last] = [lineOf(start), lineOf(end - 1)];
    const lines = last - first + 1;
    if (lines > mostFunctionLines)
      found.push(`${file}:${first} ${name} has ${lines} lines, more than ${mostFunctionLines}`);
  }
  for (const { words, start } of sentencesOf(comments)) {
    const place = `${file}:${lineOf(start)}`;
    if (question.test(words)) questions.push(`${place} ${words.slice(0, 80)}`);
    for (const [pattern, instead] of dialect) {
      const [phrase] = pattern.exec(words) ?? [];
      if (phrase !== undefined) found.push(`${place} "${phrase.trim()}": write ${instead}`);
    }
  }
}
if (questions.length > mostQuestions) {
  found.push(
    `${questions.length} comments open with What, Who, Whose, Where or How, more than ${mostQuestions}:`,
    ...questions.map((line) => `  ${line}`),
  );
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

/** Returns the text of each comment. Line comments that follow each other are one. */
function sentencesOf(comments) {
  const merged = [];
  for (const { type, value, start, end } of comments) {
    const words = value
      .replace(/^\*/, "")
      .replace(/\s*\n\s*\*? ?/g, " ")
      .trim();
    const before = merged.at(-1);
    if (type === "Line" && before?.type === "Line" && start - before.end < 12) {
      before.words += ` ${words}`;
      before.end = end;
    } else if (!/^(?:biome-ignore|v8 ignore|@ts-)/.test(words)) {
      merged.push({ type, words, start, end });
    }
  }
  return merged;
}

/** Maps an offset to its line. */
function lineCounter(text) {
  const starts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
  return (offset) => starts.findLastIndex((start) => start <= offset) + 1;
}
