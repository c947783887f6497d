// No page has HTML: what looks like a tag, such as `<name>`, is text, and a comment is a mark of a generator.

/** A plugin for markdown-it. */
export function showAngleBrackets(md) {
  const show = (tokens, index) => {
    const { content } = tokens[index];
    return content.startsWith("<!--") ? "" : md.utils.escapeHtml(content);
  };
  md.renderer.rules.html_block = show;
  md.renderer.rules.html_inline = show;
}
