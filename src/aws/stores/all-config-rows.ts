import type { Database } from "../../base/types/database.ts";
import type { ConfigRow, RowAddress } from "../../parts/config/read/rows.ts";

/** A page of the rows of all tenants. */
export interface ConfigRowPage {
  readonly rows: readonly { readonly address: RowAddress; readonly row: ConfigRow }[];
  /** How many items were looked at for them, those of history included. */
  readonly scanned: number;
}

/**
 * Reads every configuration row of the table, a page after the other. A row that is written meanwhile is given as it was or is.
 *
 * @throws Error that names the table.
 */
export async function* allConfigRows(
  database: Database,
  tableName: string,
): AsyncGenerator<ConfigRowPage> {
  const { ScanCommand } = await import("../clients/dynamodb-sdk.ts");
  let from: Record<string, unknown> | undefined;
  do {
    const page = new ScanCommand({
      TableName: tableName,
      FilterExpression: "begins_with(pk, :rows)",
      ExpressionAttributeValues: { ":rows": "config#" },
      ...(from === undefined ? {} : { ExclusiveStartKey: from }),
    });
    const answer = await database.send(page).catch((error: Error) => {
      throw new Error(`${tableName}: ${error.name}: ${error.message}`, { cause: error });
    });
    yield { rows: (answer.Items ?? []).map(rowOf), scanned: answer.ScannedCount ?? 0 };
    from = answer.LastEvaluatedKey;
  } while (from !== undefined);
}

function rowOf({ pk, sk, ...row }: Record<string, unknown>): ConfigRowPage["rows"][number] {
  // Safe: whoever reads a row holds value and version against the declaration.
  return { address: { partition: String(pk), key: String(sk) }, row: row as unknown as ConfigRow };
}
