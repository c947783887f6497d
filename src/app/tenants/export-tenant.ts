import { dynamoJson } from "./stored-item.ts";
import { firstState, type Walk, type WalkState, walkTables } from "./walk.ts";

export interface Export extends Pick<Walk, "sources" | "rows" | "keep"> {
  /** State of an interrupted export to resume. */
  readonly begun?: WalkState | undefined;
  readonly write: (lines: string) => Promise<void>;
}

interface ExportHeader {
  readonly tenant: string;
  /** Start of the export, in ISO 8601. */
  readonly exportedAt: string;
  readonly tables: readonly string[];
  readonly notCovered: readonly string[];
}

export function headerLine(header: ExportHeader): string {
  return `${JSON.stringify({ keelson: "tenant-export", format: 1, ...header })}\n`;
}

/**
 * Writes the rows of a tenant, one per line: `{ "table": "files", "item": { … } }`, with the item
 * in DynamoDB's JSON.
 * @returns the final state.
 * @throws any error of the store or of `write`.
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
