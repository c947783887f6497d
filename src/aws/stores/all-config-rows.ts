import type { Database } from "../../base/types/database.ts";
import type { ConfigRow, RowAddress } from "../../parts/config/read/rows.ts";

interface ConfigRowPage {
  readonly rows: readonly { readonly address: RowAddress; readonly row: ConfigRow }[];
  readonly scanned: number;
}

/**
 * Reads every row of the table. A concurrent write may appear or not.
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
      ExclusiveStartKey: from,
    });
    const answer = await database.send(page).catch((error: Error) => {
      throw new Error(`${tableName}: ${error.name}: ${error.message}`, { cause: error });
    });
    yield { rows: (answer.Items ?? []).map(rowOf), scanned: answer.ScannedCount ?? 0 };
    from = answer.LastEvaluatedKey;
  } while (from !== undefined);
}

function rowOf({ pk, sk, ...row }: Record<string, unknown>): ConfigRowPage["rows"][number] {
  // Safe: readers check value and version against the declaration.
  return { address: { partition: String(pk), key: String(sk) }, row: row as unknown as ConfigRow };
}
