// Checks how the sources in src/ read: the length of each file and the English of its comments.
// `node scripts/sources.mjs [folder]` prints each finding and exits with 1 if there is one. Default folder: src/.
import { globSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { parseSync } from "rolldown/utils";

/** Most lines of a file. */
const mostLines = 300;

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
  const { comments } = parseSync(file, text, { lang: "ts" });
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
