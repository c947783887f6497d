// The site: the pages of docs/, with the sidebar of docs/README.md. Only `npm run address` says where the repository is; until
// then, nothing links to it.
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";
import { readAddresses } from "../../scripts/address.mjs";
import { showAngleBrackets } from "../angle-brackets.mjs";
import { drawDiagrams } from "../diagrams.mjs";
import { emptyHeads } from "../empty-heads.mjs";
import { mapLinks } from "../links.mjs";
import { anchorOf, pagesByKind, titleOf } from "../pages.mjs";

const site = join(dirname(fileURLToPath(import.meta.url)), "..");
const docs = join(site, "..", "docs");
const addresses = readAddresses();
const kinds = pagesByKind(docs);

// biome-ignore lint/style/noDefaultExport: VitePress takes no other
export default defineConfig({
  srcDir: docs,
  outDir: join(site, "dist"),
  cacheDir: join(site, "node_modules", ".cache"),
  rewrites: { "README.md": "index.md" },
  srcExclude: ["decisions.md"], // for those who change keelson, and not in the package
  base: addresses?.siteBase ?? "/",
  title: "keelson",
  description: "Multi-tenant services as Lambda functions and containers on AWS",
  lang: "en",
  ignoreDeadLinks: [/^http:\/\/localhost/], // examples of what a reader's own server serves
  vite: { esbuild: { tsconfigRaw: "{}" } }, // Vite 5 does not know the target of the library's own
  markdown: {
    anchor: { slugify: anchorOf },
    config(md) {
      md.use(mapLinks, { docs, files: addresses?.files, titleOf });
      md.use(drawDiagrams);
      md.use(showAngleBrackets);
      md.use(emptyHeads);
    },
    // The ordinary themes have too little contrast for comments.
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
  },
  themeConfig: {
    nav: [
      ...kinds.map(({ kind, pages: [first] }) => ({ text: kind, link: first.link })),
      { text: "Types", link: "/types/index.html", target: "_self" },
    ],
    sidebar: kinds.map(({ kind, pages }) => ({
      text: kind,
      items: pages.map(({ title, link }) => ({ text: title, link })),
    })),
    outline: { level: [2, 3] },
    search: {
      provider: "local",
      options: { miniSearch: { searchOptions: { boost: { title: 4, titles: 2, text: 1 } } } },
    },
    ...(addresses === undefined
      ? {}
      : {
          socialLinks: [{ icon: "github", link: addresses.files.replace(/\/blob\/.*/, "") }],
          editLink: { pattern: `${addresses.edit}docs/:path` },
        }),
  },
});
