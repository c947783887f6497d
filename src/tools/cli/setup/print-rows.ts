import { type CommandContext, flag, oneLine } from "./define-command.ts";

/** A list's line. Its members are the columns. */
type Row = Readonly<Record<string, unknown>>;

export const jsonFlag = { json: flag("prints one JSON line per row, for programs") } as const;

/** Column widths are computed from this many rows. Further rows are printed as they arrive. */
const measuredRows = 100;

/**
 * Prints rows as a table for people, or with `json` as one JSON line each.
 *
 * @param none - what to say on standard error if there is no row.
 * @returns the number of rows.
 */
export async function printRows(
  rows: AsyncIterable<Row> | Iterable<Row>,
  { json }: { readonly json: boolean },
  { print, complain }: Pick<CommandContext, "print" | "complain">,
  none: string,
): Promise<number> {
  let count = 0;
  let lineOf: ((row: Row) => string) | undefined;
  const first: Row[] = [];
  for await (const row of rows) {
    count += 1;
    if (json) print(JSON.stringify(row));
    else if (lineOf !== undefined) print(lineOf(row));
    else if (first.push(row) === measuredRows) lineOf = printTable(first, print);
  }
  if (count === 0) complain(`keelson: ${none}`);
  if (first.length > 0 && lineOf === undefined) printTable(first, print);
  return count;
}

/** Prints headings and rows. Returns the function that formats further rows. */
function printTable(rows: readonly Row[], print: CommandContext["print"]) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const columns = names.map((name) => {
    const widest = Math.max(...rows.map((row) => cell(row[name]).length));
    return { name, width: Math.max(name.length, Math.min(widest, widestColumn)) };
  });
  const lineOf = (row: Row) =>
    columns
      .map(({ name, width }) => cell(row[name]).padEnd(width))
      .join("  ")
      .trimEnd();
  print(lineOf(Object.fromEntries(names.map((name) => [name, name]))), "bold");
  for (const row of rows) print(lineOf(row));
  return lineOf;
}

/** Longer cells are printed whole, and push the rest of their line to the right. */
const widestColumn = 60;

function cell(value: unknown): string {
  if (value === undefined || value === null || value === "") return "-";
  if (Array.isArray(value)) return value.map(cell).join(", ") || "-";
  return oneLine(typeof value === "object" ? JSON.stringify(value) : String(value));
}
