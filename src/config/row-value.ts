import type { ConfigKeyDefinition } from "./declaration.ts";
import type { ConfigRow } from "./rows.ts";

/** The value of a row, or why it has none. */
export type RowValue = { readonly value: unknown } | { readonly unreadable: string };

/**
 * Takes the value out of a row. A secret counts only where it is sealed: a row of an
 * encrypted key in plain text is never used, so that none survives unnoticed.
 */
export function rowValue(row: ConfigRow, { encrypted }: Pick<ConfigKeyDefinition, "encrypted">): RowValue {
  return encrypted ? { unreadable: "the row of an encrypted key is not sealed" } : { value: row.value };
}
