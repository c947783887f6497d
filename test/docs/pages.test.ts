import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { documents, headingAnchors, root, tableUnder, textOf } from "./markdown.ts";

const index = "docs/README.md";
const pages = documents.filter((document) => /^docs\/(?!README\.md)/.test(document));

/** Pages that have over 250 lines, and why. */
const longer: Readonly<Record<string, string>> = {
  "docs/api.md": "a reference: one row for each exported name, written by npm run api",
  "docs/boot-problems.md": "a reference: boot errors print the addresses of its headings",
};
/** Pages that are still to be split. */
const unsplit: readonly string[] = ["events"].map((name) => `docs/${name}.md`);

test("a page has at most 250 lines, unless it is a reference whose entries belong together", () => {
  const long = pages.filter((page) => textOf(page).trimEnd().split("\n").length > 250);

  expect(long).toEqual([...Object.keys(longer), ...unsplit].sort());
});

const kinds = ["Start", "How-to", "Operate", "Reference", "Concepts"];
const audiences = ["developers", "operators", "API callers", "everyone"];

test("the index lists every page once, by its kind and with its audience", () => {
  const headings = [...textOf(index).matchAll(/^## (.*)$/gm)].map(([, heading]) => heading);
  const rows = kinds.flatMap((kind) => tableUnder(index, kind));
  const listed = rows.map(([page = ""]) => `docs/${/\]\((.*)\)$/.exec(page)?.[1]}`);

  expect(headings).toEqual(kinds);
  expect(listed.sort()).toEqual(
    pages.filter((page) => page !== "docs/decisions.md"), // only in the repository
  );
  expect(rows.filter(([, audience = ""]) => !audiences.includes(audience))).toEqual([]);
});

test("every address of a page in sources, tests, scripts, templates and examples leads to its heading", () => {
  const files = globSync(
    [
      "{src,test,scripts,examples,infra,bench}/**/*.{ts,tsx,js,mjs,json,yaml,yml,md,env}",
      "*.{yml,json}",
      ".github/**/*.{yml,md}",
      "Dockerfile",
    ],
    { cwd: root, exclude: ["**/node_modules/**"] },
  )
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => path !== "test/docs/pages.test.ts");
  const addresses = files.flatMap((file) =>
    addressesIn(readFileSync(join(root, file), "utf8")).map((address) => ({ file, address })),
  );
  const broken = addresses.filter(({ file, address }) => !isInvented(file) && !leads(address));

  expect(addresses.filter(({ file }) => file.startsWith("src/")).length).toBeGreaterThan(20);
  expect(broken.map(({ file, address }) => `${file}: ${address}`)).toEqual([]);
});

test("an address is followed to its page and heading", () => {
  const addresses = addressesIn(
    "see docs/errors.md#not_found, docs/errors.md#gone and docs/gone.md; docs/boot-problems.md#$",
  );

  expect(addresses).toEqual([
    "docs/errors.md#not_found",
    "docs/errors.md#gone",
    "docs/gone.md",
    "docs/boot-problems.md",
  ]);
  expect(addresses.filter((address) => !leads(address))).toEqual([
    "docs/errors.md#gone",
    "docs/gone.md",
  ]);
});

/** The addresses of pages in a text; a heading that is filled in at run time has its own test. */
function addressesIn(text: string): string[] {
  return [...text.matchAll(/\bdocs\/[\w-]+(?:\/[\w-]+)*\.md(?:#[\w-]+)?/g)].map(
    ([address]) => address,
  );
}

function leads(address: string): boolean {
  const [page = "", anchor] = address.split("#");
  if (!documents.includes(page)) return false;
  return anchor === undefined || headingAnchors(page).includes(anchor);
}

/** Tests of the tools that read documents invent pages. */
function isInvented(file: string): boolean {
  return file.startsWith("test/docs/") || basename(file) === "wording.test.ts";
}
