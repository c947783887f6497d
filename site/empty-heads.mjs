// A heading of a column without text is an ordinary cell: a screen reader would announce a heading without a name.

/** A plugin for markdown-it. */
export function emptyHeads(md) {
  md.core.ruler.push("empty_heads", ({ tokens }) => {
    for (const [index, { type }] of tokens.entries()) {
      if (type !== "th_open" || tokens[index + 1].content !== "") continue;
      tokens[index].tag = "td";
      tokens[index + 2].tag = "td";
    }
  });
}
