// The pages of the site, as docs/README.md lists them: there is no second list.
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** @returns the headings of the index with their pages, in its order: `[{ kind, pages: [{ link, title }] }]`. */
export function pagesByKind(docs) {
  const kinds = [];
  for (const line of readFileSync(join(docs, "README.md"), "utf8").split("\n")) {
    const [, kind] = /^## (.*)$/.exec(line) ?? [];
    if (kind !== undefined) kinds.push({ kind, pages: [] });
    const [, page] = /^\| \[[^\]]*\]\(([\w/-]+)\.md\) \|/.exec(line) ?? [];
    if (page !== undefined)
      kinds.at(-1).pages.push({ link: `/${page}`, title: titleOf(join(docs, `${page}.md`)) });
  }
  return kinds.filter(({ pages }) => pages.length > 0);
}

/** The anchor of a heading, as GitHub makes it: the pages link to those, and so do the answers of a server to docs/errors.md. */
export function anchorOf(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(" ", "-");
}

/** The first heading of a page, without marks of code. */
export function titleOf(file) {
  const [, title] = /^# (.*)$/m.exec(readFileSync(file, "utf8")) ?? [];
  if (title === undefined) throw new Error(`${file} has no heading`);
  return title.replaceAll("`", "");
}
