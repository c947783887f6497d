import { dirname, posix } from "node:path";
import { expect, test } from "vitest";
import { documents, headingAnchors, textOf } from "./markdown.ts";

const glossary = "docs/glossary.md";

/** Pages without guides: generated, or about the repository. */
const others = ["api", "decisions", "options", "specification", "upgrade"].map(
  (name) => `docs/${name}.md`,
);
const pages = ["README.md", ...documents.filter((document) => document.startsWith("docs/"))].filter(
  (document) => document !== glossary && !others.includes(document),
);

/** Pages on which a word first has its usual sense, or is in a table that another test reads. */
const usual: Readonly<Record<string, readonly string[]>> = {
  claim: ["README.md", "docs/callers.md", "docs/hosts.md", "docs/identity.md", "docs/security.md"],
  fence: ["docs/metrics.md"],
  hook: ["docs/commit.md"],
  projection: ["docs/doctor.md"],
};

/** Words that have their usual sense on most pages, so that a reader has to judge. */
const ambiguous = ["commit", "handle", "level", "operator", "proof", "replay", "step"];

const words = headingAnchors(glossary).slice(1);

test("the glossary has at most 30 words, in alphabetical order", () => {
  expect(words.length).toBeGreaterThan(20);
  expect(words.length).toBeLessThanOrEqual(30);
  expect(words).toEqual(words.toSorted());
});

test.each(pages)("the first use of each word on %s links to the glossary", (page) => {
  const missing = words
    .filter((word) => !ambiguous.includes(word) && usual[word]?.includes(page) !== true)
    .filter((word) => firstUse(page, word)?.isLinked === false);
  // To fix it, link the first use: [outbox](glossary.md#outbox).
  expect(missing).toEqual([]);
});

test("a use in code, a heading or the text of another link needs no link", () => {
  const text = "# Outbox\n\n`outbox`, [the outbox](events.md).\n\n```sh\noutbox\n```\n";
  expect(firstUseIn(text, "outbox", "glossary.md")).toBeUndefined();
  expect(firstUseIn(`${text}The outbox.`, "outbox", "glossary.md")).toEqual({ isLinked: false });
  expect(firstUseIn(`${text}The [outbox](glossary.md#outbox).`, "outbox", "glossary.md")).toEqual({
    isLinked: true,
  });
});

function firstUse(page: string, word: string) {
  return firstUseIn(textOf(page), word, posix.relative(dirname(page), glossary));
}

/** Returns whether the first use of a word in prose is a link to its entry; `undefined` without a use. */
function firstUseIn(text: string, word: string, path: string): { isLinked: boolean } | undefined {
  const target = `(${path}#${word})`;
  const prose = text
    .replaceAll(/<!-- reference: [\s\S]*?<!-- \/reference -->/g, "") // generated from comments
    .replaceAll(/^ *(`{3,}|~{3,})[\s\S]*?^ *\1 *$/gm, "")
    .replaceAll(/^#.*$/gm, "")
    .replaceAll(/``.+?``|`[^`\n]*`/g, "")
    .replaceAll(/!?\[([^\]]*)\](\([^)]*\))/g, (_, shown: string, to: string) =>
      to === target ? `[${shown}]${to}` : "",
    )
    .replaceAll(/https?:\/\/\S+|<[^>\n]+>/g, "");
  const use = new RegExp(`(\\[?)\\b${formsOf(word)}\\b(?:\\](\\S*))?`, "i").exec(prose);
  return use === null
    ? undefined
    : { isLinked: use[1] === "[" && use[2]?.startsWith(target) === true };
}

/** Matches a word of the glossary in each form: `sweep`, `sweeps`. */
function formsOf(word: string): string {
  const forms: Readonly<Record<string, string>> = {
    drain: "drain(?:s|ing)?",
    fence: "fenc(?:es?|ed|ing)",
  };
  return forms[word] ?? `${word.replaceAll("-", "[- ]")}s?`;
}
