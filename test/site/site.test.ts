import { existsSync, globSync, readFileSync } from "node:fs";
import type { Server } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startChromium } from "../browser/chromium.ts";
import { serveFolder } from "./serve.ts";

const root = join(import.meta.dirname, "../..");
const built = join(root, "site", "dist");
if (!existsSync(join(built, "index.html")))
  throw new Error("there is no site in site/dist: npm run docs:build");

// Safe: modules in plain JavaScript, and this is what they export.
const { pagesByKind } = (await load("site/pages.mjs")) as {
  pagesByKind(docs: string): {
    kind: string;
    pages: { link: string; title: string }[];
  }[];
};
const { readAddresses } = (await load("scripts/address.mjs")) as {
  readAddresses(): { siteBase: string } | undefined;
};
const kinds = pagesByKind(join(root, "docs"));
const base = readAddresses()?.siteBase ?? "/";

const sizes = [
  { name: "a phone", width: 390, height: 844 },
  { name: "a tablet", width: 820, height: 1180 },
  { name: "a desktop", width: 1440, height: 900 },
];
/** The index, and pages with code, with a diagram, with many headings, and with the longest tables. */
const looked = ["", "handlers.html", "once.html", "errors.html", "hosts.html"];

let served: { server: Server; origin: string };
let browser: Browser;

beforeAll(async () => {
  served = await serveFolder(built, base);
  browser = await startChromium();
});
afterAll(async () => {
  await browser?.close();
  served?.server.close();
});

function load(path: string): Promise<unknown> {
  return import(pathToFileURL(join(root, path)).href);
}

async function open(path: string, size = sizes[2], colorScheme: "light" | "dark" = "light") {
  const { width = 0, height = 0 } = size ?? {};
  const page = await browser.newPage({ viewport: { width, height }, colorScheme });
  await page.goto(served.origin + base + path);
  return page;
}

describe.each(sizes)("on $name", (size) => {
  test.each(["light", "dark"] as const)("axe finds nothing, %s", async (scheme) => {
    const axe = readFileSync(join(root, "site/node_modules/axe-core/axe.min.js"), "utf8");
    const found: string[] = [];
    for (const path of looked) {
      const page = await open(path, size, scheme);
      const isDark = await page.evaluate("document.documentElement.classList.contains('dark')");
      expect(isDark).toBe(scheme === "dark");
      await page.evaluate(axe);
      found.push(...(await violationsIn(page)).map((text) => `${path}: ${text}`));
      await page.close();
    }
    expect(found).toEqual([]);
  });
});

async function violationsIn(page: Page): Promise<string[]> {
  // Safe: this is what axe answers with.
  const violations = (await page.evaluate(
    "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)",
  )) as { id: string; nodes: { html: string; failureSummary: string }[] }[];
  return violations.flatMap(({ id, nodes }) =>
    nodes.slice(0, 3).map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
  );
}

test.each([
  ["dead letter", /^\/(?:queues|(?:runbook[\w-]*\/)?[\w-]*dead-letters?[\w-]*)\.html/],
  ["409", /^\/errors\.html/],
])("the first three hits of the search for %s include the right page", async (query, right) => {
  const page = await open("");
  // Until Vue has mounted the page, a click has no effect.
  await page.waitForFunction("document.querySelector('#app').__vue_app__ !== undefined");
  await page.getByRole("button", { name: "Search" }).first().click();
  await page.locator("#localsearch-input").fill(query);
  const hits = () =>
    page
      .locator("#localsearch-list .result")
      .evaluateAll((links) => links.slice(0, 3).map((link) => String(link.getAttribute("href"))));
  await expect.poll(hits).toHaveLength(3);
  expect((await hits()).filter((href) => right.test(href.replace(base, "/")))).not.toEqual([]);
  await page.close();
});

test("the sidebar has the pages of docs/README.md, in its order, by their titles", async () => {
  const page = await open("once.html");
  const groups = await page.locator(".VPSidebar .group").evaluateAll((all) =>
    all.map((group) => ({
      kind: group.querySelector("h2")?.textContent,
      pages: [...group.querySelectorAll("a")].map((link) => ({
        link: link.getAttribute("href")?.replace(/\.html$/, ""),
        title: link.textContent,
      })),
    })),
  );
  const linked = kinds.map(({ kind, pages }) => ({
    kind,
    pages: pages.map(({ link, title }) => ({ link: base.slice(0, -1) + link, title })),
  }));
  expect(groups).toEqual(linked);
  await page.close();
});

test("every page of docs/ is a page of the site, except the decisions and the index", () => {
  const pages = globSync("**/*.md", { cwd: join(root, "docs") }).map((path) =>
    path.replaceAll("\\", "/").replace(/\.md$/, ".html"),
  );
  const missing = pages.filter((page) => !existsSync(join(built, page)));
  expect(missing.sort()).toEqual(["README.html", "decisions.html"]);
});

test("a diagram is drawn whole, and nothing comes from another host", async () => {
  const page = await browser.newPage();
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).origin));
  await page.goto(`${served.origin}${base}container.html`, { waitUntil: "networkidle" });
  const texts = await page.locator(".diagram text").allTextContents();
  expect(texts).toEqual(expect.arrayContaining(["Platform", "SIGTERM", "Requests and workers"]));
  expect([...new Set(asked)]).toEqual([served.origin]);
  await page.close();
});

test("no link leads nowhere: pages, headings, files of the types", () => {
  const pages = globSync("**/*.html", { cwd: built, exclude: ["types/**"] }).map((path) =>
    path.replaceAll("\\", "/"),
  );
  const ids = new Map(pages.map((page) => [`${base}${page}`, idsOf(page)]));
  const broken = pages.flatMap((page) =>
    [...readFileSync(join(built, page), "utf8").matchAll(/ href="([^"]*)"/g)]
      .map(([, href = ""]) => new URL(href, `http://site${base}${page}`))
      .filter(({ host }) => host === "site")
      .filter(({ pathname, hash }) => {
        const path = pathname.endsWith("/") ? `${pathname}index.html` : pathname;
        const isThere = existsSync(join(built, path.slice(base.length)));
        const isHeading = hash === "" || ids.get(path)?.has(decodeURIComponent(hash.slice(1)));
        return !isThere || isHeading === false;
      })
      .map(({ pathname, hash }) => `${page}: ${pathname}${hash}`),
  );
  expect([...new Set(broken)]).toEqual([]);
});

function idsOf(page: string): ReadonlySet<string> {
  const text = readFileSync(join(built, page), "utf8");
  return new Set([...text.matchAll(/ id="([^"]*)"/g)].map(([, id = ""]) => id));
}

test("every entry point has its types", () => {
  // Safe: this repository's own file.
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    exports: Record<string, { types?: string }>;
  };
  const entries = Object.values(exports).filter((entry) => entry.types !== undefined);
  expect(globSync("types/modules/*.html", { cwd: built })).toHaveLength(entries.length);
});
