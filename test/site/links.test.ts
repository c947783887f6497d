import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, expect, test } from "vitest";

const site = join(import.meta.dirname, "../../site");
const docs = mkdtempSync(join(tmpdir(), "keelson-links-"));
writeFileSync(join(docs, "README.md"), "# Documentation\n");
writeFileSync(join(docs, "hosts.md"), "# Hosts\n");
afterAll(() => rmSync(docs, { recursive: true, force: true }));

// Safe: modules in plain JavaScript, and this is what they export.
interface Markdown {
  use(plugin: unknown, options: object): Markdown;
  render(text: string, env: object): string;
}
const { default: createMarkdown } = (await import(
  pathToFileURL(join(site, "node_modules/markdown-it/index.mjs")).href
)) as { default: () => Markdown };
const { mapLinks } = (await import(pathToFileURL(join(site, "links.mjs")).href)) as {
  mapLinks: unknown;
};
const { titleOf } = (await import(pathToFileURL(join(site, "pages.mjs")).href)) as {
  titleOf: unknown;
};

function rendered(text: string, files?: string): string {
  const md = createMarkdown().use(mapLinks, { docs, files, titleOf });
  return md.render(text, { relativePath: "tour.md" });
}

test("a link to a file of the repository leads there, once it has an address", () => {
  const html = rendered("See [the sample](../examples/files).", "https://host/o/n/blob/main/");
  expect(html).toContain('href="https://host/o/n/blob/main/examples/files"');
});

test("without an address, the text of such a link stays, without a link", () => {
  const html = rendered("See [the `sample`](../examples/files), [hosts](hosts.md).");
  expect(html).toContain("See the <code>sample</code>, <a");
  expect(html).not.toContain("examples/files");
});

test("a link by the name of a page's file shows its title", () => {
  const html = rendered("See [hosts.md](hosts.md#options) and [README.md](README.md).");
  expect(html).toContain('href="hosts.md#options">Hosts</a>');
  expect(html).toContain('href="./index.md">Documentation</a>');
});
