// Tables of Markdown, as this project writes them.

/** @param heads - headings of the columns. @param rows - cells in Markdown, one list a row. */
export function tableOf(heads, rows) {
  const line = (cells) => `| ${cells.join(" | ")} |`.replaceAll(/ {2}\|/g, " |");
  return [line(heads), `|${"---|".repeat(heads.length)}`, ...rows.map(line)].join("\n");
}

/** Text of a comment as a cell: addresses of pages become links, and nothing ends the cell. */
export function cellOf(text) {
  return text
    .replaceAll(/`docs\/([\w-]+\.md)(#[\w-]+)?`/g, "[$1]($1$2)")
    .replaceAll(/(?<!\\)\|/g, "\\|");
}

/** A name or a type as code in a cell. */
export function codeCell(text) {
  return text === "" ? "" : `\`${text.replaceAll("|", "\\|")}\``;
}

const columns = ["Member", "Type", "Default", ""];

/** Rows of `memberReader` as a table. @param prefix - precedes each name: `ctx.` */
export function memberTable(rows, { heads = columns, prefix = "" } = {}) {
  return tableOf(
    heads,
    rows.map(({ name, type, byDefault, text }) => [
      codeCell(`${prefix}${name}`),
      codeCell(type),
      cellOf(byDefault),
      cellOf(text),
    ]),
  );
}
