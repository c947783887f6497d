// Blocks of `mermaid` as pictures, drawn when the site is built. Mermaid itself would take 84 MB, and draw them in each browser.
import { renderMermaidSVG } from "beautiful-mermaid";

/** Colours of the site, which change between light and dark. */
const colours = {
  bg: "var(--vp-c-bg)",
  fg: "var(--vp-c-text-1)",
  line: "var(--vp-c-text-2)",
  muted: "var(--vp-c-text-2)",
  transparent: true,
};

/** A plugin for markdown-it. */
export function drawDiagrams(md) {
  const { fence } = md.renderer.rules;
  md.renderer.rules.fence = (tokens, index, ...more) => {
    const { info, content } = tokens[index];
    if (info.trim() !== "mermaid") return fence(tokens, index, ...more);
    // Without its own style, which would load a font from Google; that of the theme has the rest of it. `v-pre`: braces are text.
    const svg = renderMermaidSVG(content, colours).replace(/<style>[\s\S]*?<\/style>/, "");
    return `<div class="diagram" v-pre tabindex="0" role="region" aria-label="Diagram">${svg}</div>`;
  };
}
