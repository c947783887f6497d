import { parseSync } from "rolldown/utils";
import { lineCounter } from "../lines.mjs";

/** Returns the sentences of a Markdown document as `{ line, words }`, without headings and blocks of code. */
export function sentencesOfMarkdown(text) {
  const found = [];
  let isCode = false;
  let paragraph = { line: 0, text: "" };
  const end = () => {
    found.push(...sentencesIn(paragraph.text, paragraph.line));
    paragraph = { line: 0, text: "" };
  };
  for (const [index, raw] of text.split("\n").entries()) {
    const line = raw.trim();
    const isFence = /^(?:```|~~~)/.test(line);
    if (isFence || isCode || line === "" || /^(?:#|\||[-*] |\d+\. )/.test(line)) end();
    if (isFence) isCode = !isCode;
    else if (line.startsWith("|") && !isCode)
      for (const cell of line.split("|")) found.push(...sentencesIn(cell.trim(), index + 1));
    else if (!isCode && line !== "" && !line.startsWith("#"))
      paragraph = {
        line: paragraph.line || index + 1,
        text: `${paragraph.text} ${line.replace(/^(?:[-*]|\d+\.) /, "")}`.trim(),
      };
  }
  end();
  return found;
}

/** Returns the sentences of a module's comments and of its strings of four words or more. */
export function sentencesOfModule(file, text) {
  const lineOf = lineCounter(text);
  const { program, comments } = parseSync(file, text, { lang: "ts" });
  return [
    ...commentsOf(comments).flatMap(({ words, start }) => sentencesIn(words, lineOf(start))),
    ...stringsOf(program)
      .filter(({ words }) => words.trim().split(/\s+/).length >= 4)
      .flatMap(({ words, start }) => sentencesIn(words, lineOf(start))),
  ];
}

/** Returns the text of each comment. Line comments that follow each other are one. */
export function commentsOfModule(file, text) {
  const lineOf = lineCounter(text);
  const { comments } = parseSync(file, text, { lang: "ts" });
  return commentsOf(comments).map(({ words, start }) => ({ words, line: lineOf(start) }));
}

function commentsOf(comments) {
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

/** Returns the strings and templates below a node. A template's expressions are `x`. */
function stringsOf(node) {
  if (node.type === "Literal")
    return typeof node.value === "string" ? [{ words: node.value, start: node.start }] : [];
  const template =
    node.type === "TemplateLiteral"
      ? [{ words: node.quasis.map(({ value }) => value.cooked).join("`x`"), start: node.start }]
      : [];
  return [
    ...template,
    ...Object.values(node)
      .flat()
      .filter((child) => typeof child?.type === "string")
      .flatMap(stringsOf),
  ];
}

/** Splits a string into sentences. Inline code and addresses are `x`, and a link is its own words. */
function sentencesIn(text, line) {
  return text
    .replace(/!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])/g, "$1")
    .replace(/\{@link (\S+?)\}/g, "`x`")
    .replace(/`[^`]*`|https?:\/\/\S+/g, "`x`")
    .replace(/\*\*|<[^>]+>/g, "")
    .split(/(?<=[.!?])\s+(?=[A-Z`"(])|\s+(?=@\w+ )/)
    .map((words) => ({ line, words: words.replace(/^@\w+ /, "").trim() }))
    .filter(({ words }) => words !== "");
}
