import { dynamoJson } from "./stored-item.ts";
import { firstState, type Walk, type WalkState, walkTables } from "./walk.ts";

/** How an export goes. */
export interface Export extends Pick<Walk, "sources" | "rows" | "keep"> {
  /** Where one that was cut stands; `undefined` for a new one. */
  readonly begun?: WalkState | undefined;
  /** Takes lines, each ended; it has written them when it resolves. */
  readonly write: (lines: string) => Promise<void>;
}

/** What the first line says of the lines below. */
export interface ExportHeader {
  readonly tenant: string;
  /** ISO 8601. */
  readonly exportedAt: string;
  /** The tables that were searched, as they are declared. */
  readonly tables: readonly string[];
  readonly notCovered: readonly string[];
}

/** The first line of an export. */
export function headerLine(header: ExportHeader): string {
  return `${JSON.stringify({ keelson: "tenant-export", format: 1, ...header })}\n`;
}

/**
 * Writes the rows of a tenant, a line each: `{ "table": "files", "item": { … } }`, the item in DynamoDB's JSON.
 *
 * @returns where it ended, with its counts.
 * @throws whatever the store or `write` throws.
 */
export function exportTenant({ sources, rows, keep, begun, write }: Export): Promise<WalkState> {
  const visit: Walk["visit"] = async ({ table, exported }, own, counted) => {
    await write(
      own
        .map((item) => `${JSON.stringify({ table, item: dynamoJson(exported(item)) })}\n`)
        .join(""),
    );
    counted(own.length);
  };
  return walkTables({ sources, rows, keysOnly: false, visit, keep }, begun ?? firstState(sources));
}
