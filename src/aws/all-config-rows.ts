import type { ConfigRow, RowAddress } from "../config/read/rows.ts";
import type { Database } from "../context/database.ts";

/** A page of the rows of all tenants. */
export interface ConfigRowPage {
  readonly rows: readonly { readonly address: RowAddress; readonly row: ConfigRow }[];
  /** How many items were looked at for them, those of history included. */
  readonly scanned: number;
}

/** Reads every configuration row of the table, a page after the other. A row that is written meanwhile is given as it was or is. */
export async function* allConfigRows(
  database: Database,
  tableName: string,
  { pageSize }: { readonly pageSize?: number } = {},
): AsyncGenerator<ConfigRowPage> {
  const { ScanCommand } = await import("./dynamodb-sdk.ts");
  let from: Record<string, unknown> | undefined;
  do {
    const {
      Items = [],
      ScannedCount = 0,
      LastEvaluatedKey,
    } = await database.send(
      new ScanCommand({
        TableName: tableName,
        FilterExpression: "begins_with(pk, :rows)",
        ExpressionAttributeValues: { ":rows": "config#" },
        ...(pageSize === undefined ? {} : { Limit: pageSize }),
        ...(from === undefined ? {} : { ExclusiveStartKey: from }),
      }),
    );
    yield {
      // Safe: whoever reads a row checks value and version against the declaration.
      rows: Items.map(({ pk, sk, ...row }) => ({
        address: { partition: String(pk), key: String(sk) },
        row: row as unknown as ConfigRow,
      })),
      scanned: ScannedCount,
    };
    from = LastEvaluatedKey;
  } while (from !== undefined);
}
