// Links of the pages: a page is named by its title, and a file of the repository by its address there.
import { existsSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";

/**
 * A plugin for markdown-it.
 *
 * @param docs - the folder of the pages.
 * @param files - the address that the path of a file follows; `undefined` until the repository has one: then the text of such
 * a link stays, without the link.
 * @param titleOf - the title of a page, by its file.
 */
export function mapLinks(md, { docs, files, titleOf }) {
  md.core.ruler.push("links_of_docs", ({ tokens, env }) => {
    const folder = dirname(join(docs, env.relativePath ?? ""));
    for (const { type, children } of tokens) if (type === "inline") mapInline(children, folder);
  });

  function mapInline(tokens, folder) {
    for (const [index, token] of tokens.entries()) {
      if (token.type !== "link_open") continue;
      const [path, anchor] = token.attrGet("href").split("#");
      if (path === "" || /^[a-z]+:/.test(path)) continue;
      const file = join(folder, path);
      const inside = relative(docs, file).split(sep).join("/");
      if (inside.startsWith("../")) leave(tokens, index, inside.slice("../".length));
      else if (existsSync(file)) {
        const text = tokens[index + 1];
        if (text.content === path && tokens[index + 2].type === "link_close")
          text.content = titleOf(file);
        if (inside === "README.md") token.attrSet("href", withAnchor("./index.md", anchor));
      }
    }
  }

  function leave(tokens, index, path) {
    if (files !== undefined) {
      tokens[index].attrSet("href", `${files}${path}`);
      return;
    }
    const close = tokens.findIndex(({ type }, at) => at > index && type === "link_close");
    for (const at of [index, close]) {
      tokens[at].type = "text";
      tokens[at].tag = "";
      tokens[at].nesting = 0;
      tokens[at].content = "";
    }
  }
}

function withAnchor(path, anchor) {
  return anchor === undefined ? path : `${path}#${anchor}`;
}
