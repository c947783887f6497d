// Checks the pages of docs/: their length, their rows in docs/README.md, and each address of a page in sources, tests,
// templates and examples. `node scripts/pages.mjs [root]` prints each finding and exits with 1 if there is one.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { filesIn, textIn } from "./documents.mjs";
import { anchorsIn } from "./heading-anchors.ts";

/** Most lines of a page. */
const mostLines = 250;

/** Most lines of the README, which sells and links. */
const mostLinesOfReadme = 140;

/** Pages that may have more, and why. */
const longer = {
  "docs/api.md": "a reference: one row for each exported name, written by npm run api",
  "docs/options.md": "a reference: one row for each option, written by npm run reference",
  "docs/boot-problems.md": "a reference: boot errors print the addresses of its headings",
};

/** Pages without a row in the index: the index itself, and a page that is not in the package. */
const unlisted = ["docs/README.md", "docs/decisions.md"];

/** Headings of the index, which are the kinds of pages, and the readers that a page can have. */
const kinds = ["Start", "Learn", "How-to", "Operate", "Reference", "Concepts"];
const audiences = ["developers", "operators", "API callers", "everyone"];

/** Files that may name pages. Tests of what reads documents invent some. */
const naming = [
  "{src,test,scripts,examples,infra,bench}/**/*.{ts,tsx,js,mjs,json,yaml,yml,md,env}",
  "*.{ts,yml,json}",
  ".github/**/*.{yml,md}",
  "Dockerfile",
];
const inventing = /^test\/docs\/|^test\/integration\/(?:wording|pages)\.test\.ts$/;

const [root = join(import.meta.dirname, "..")] = process.argv.slice(2);
const pages = filesIn(root, ["docs/**/*.md"]);

const found = [...lengths(), ...rows(), ...addresses()];
console.log(found.length === 0 ? "pages: clean" : found.join("\n"));
process.exitCode = found.length === 0 ? 0 : 1;

function lengths() {
  const checked = pages.filter((page) => longer[page] === undefined);
  if (existsSync(join(root, "README.md"))) checked.push("README.md");
  return checked.flatMap((page) => {
    const length = textIn(root, page).trimEnd().split("\n").length;
    const most = page === "README.md" ? mostLinesOfReadme : mostLines;
    return length > most
      ? [`${page} has ${length} lines, more than ${most}: split it by tasks`]
      : [];
  });
}

/** Problems of the index: a page has one row, below its kind, with its readers. */
function rows() {
  const problems = [];
  const listed = [];
  let kind = "";
  for (const line of textIn(root, "docs/README.md").split("\n")) {
    kind = /^## (.*)/.exec(line)?.[1] ?? kind;
    const [, page, audience] = /^\| \[[^\]]*\]\(([^)]*)\) \| ([^|]*) \|/.exec(line) ?? [];
    if (page === undefined) continue;
    listed.push(`docs/${page}`);
    if (!kinds.includes(kind)) problems.push(`docs/README.md: ${page} is below ${kind}`);
    if (!audiences.includes(audience)) problems.push(`docs/README.md: ${page} is for ${audience}`);
  }
  const times = (page) => listed.filter((other) => other === page).length;
  return [
    ...problems,
    ...pages
      .filter((page) => !unlisted.includes(page) && times(page) !== 1)
      .map((page) => `docs/README.md has ${times(page)} rows of ${page}, which needs one`),
  ];
}

/** Addresses that lead to no page, or to no heading. A heading that is filled in at run time is not looked for. */
function addresses() {
  return filesIn(root, naming)
    .filter((file) => !inventing.test(file))
    .flatMap((file) =>
      textIn(root, file)
        .split("\n")
        .flatMap((line, index) =>
          [...line.matchAll(/\bdocs\/[\w-]+(?:\/[\w-]+)*\.md(?:#[\w-]+)?/g)]
            .filter(([address]) => !leads(address))
            .map(([address]) => `${file}:${index + 1} ${address} leads nowhere`),
        ),
    );
}

function leads(address) {
  const [page, anchor] = address.split("#");
  if (!existsSync(join(root, page))) return false;
  return anchor === undefined || anchorsIn(textIn(root, page)).includes(anchor);
}
