import type { CommandContext } from "./define-command.ts";

/** Yields the rows of a scan, and shows how many rows of the table, `what`, it has read. */
export async function* shownScan<Row>(
  { progress }: Pick<CommandContext, "progress">,
  what: string,
  scan: (onPage: (scanned: number) => void) => AsyncIterable<Row>,
): AsyncGenerator<Row> {
  try {
    yield* scan((scanned) => progress?.(rowsRead(what, scanned)));
  } finally {
    progress?.("");
  }
}

export function rowsRead(what: string, scanned: number): string {
  return `${what}: ${scanned} rows read`;
}
