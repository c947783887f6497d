import type { Database } from "../../base/types/database.ts";
import type { ConfigRow, RowAddress } from "../../parts/config/read/rows.ts";
import { tableOf } from "./table.ts";

interface ConfigRowPage {
  readonly rows: readonly { readonly address: RowAddress; readonly row: ConfigRow }[];
  readonly scanned: number;
}

/**
 * Reads every configuration row of the table. A concurrent write may appear or not.
 * @throws Error that names the table.
 */
export async function* allConfigRows(
  database: Database,
  tableName: string,
): AsyncGenerator<ConfigRowPage> {
  const pages = tableOf(database, tableName).scanAll({
    ConsistentRead: false,
    FilterExpression: "begins_with(pk, :rows)",
    ExpressionAttributeValues: { ":rows": "config#" },
  });
  try {
    for await (const { Items = [], ScannedCount = 0 } of pages)
      yield { rows: Items.map(rowOf), scanned: ScannedCount };
  } catch (cause) {
    const { name, message } = cause as Error; // safe: the SDK throws only errors
    throw new Error(`${tableName}: ${name}: ${message}`, { cause });
  }
}

function rowOf({ pk, sk, ...row }: Record<string, unknown>): ConfigRowPage["rows"][number] {
  // Safe: readers check value and version against the declaration.
  return { address: { partition: String(pk), key: String(sk) }, row: row as unknown as ConfigRow };
}
