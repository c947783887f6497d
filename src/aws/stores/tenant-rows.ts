import type { ScanCommandInput, WriteRequest } from "@aws-sdk/client-dynamodb";
import type { StoredItem, TenantSource } from "../../app/tenants/tenant-source.ts";
import type { TenantRows } from "../../app/tenants/walk.ts";
import type { Database } from "../../base/types/database.ts";

interface TenantRowsOptions {
  /** Maximum number of rows per page. Default: 1 MB, DynamoDB's limit. */
  readonly pageSize?: number | undefined;
  /** Waits before a retry. The first has number 1. */
  readonly wait: (attempt: number) => Promise<void>;
}

const maxAttempts = 10;

export function dynamoTenantRows(
  database: Database,
  { pageSize, wait }: TenantRowsOptions,
): TenantRows {
  return {
    page: async (source, from, keysOnly) => {
      const { ScanCommand } = await import("@aws-sdk/client-dynamodb");
      const input: ScanCommandInput = {
        TableName: source.tableName,
        ConsistentRead: true,
        FilterExpression: source.filter.expression,
        ExpressionAttributeNames: { ...source.filter.names, ...(keysOnly ? aliases(source) : {}) },
        ExpressionAttributeValues: { ...source.filter.values },
        ProjectionExpression: keysOnly ? Object.keys(aliases(source)).join(", ") : undefined,
        Limit: pageSize,
        ExclusiveStartKey: from && { ...from },
      };
      const page = await named(source, () => database.send(new ScanCommand(input)));
      const { Items: items = [], ScannedCount: scanned = 0, LastEvaluatedKey: next } = page;
      return { items, scanned, next };
    },
    remove: async (source, rows) => {
      const { BatchWriteItemCommand } = await import("@aws-sdk/client-dynamodb");
      // No condition, because the key contains the tenant or a hash unique to the tenant.
      const deletionOf = (row: StoredItem) => ({ DeleteRequest: { Key: keyOf(source, row) } });
      let left: WriteRequest[] = rows.map(deletionOf);
      for (let attempt = 0; left.length > 0; attempt += 1) {
        if (attempt === maxAttempts)
          throw new Error(
            `${source.tableName}: ${left.length} rows were not deleted in ${maxAttempts} attempts; it is throttled`,
          );
        if (attempt > 0) await wait(attempt);
        const command = new BatchWriteItemCommand({ RequestItems: { [source.tableName]: left } });
        const { UnprocessedItems = {} } = await named(source, () => database.send(command));
        left = UnprocessedItems[source.tableName] ?? [];
      }
    },
  };
}

function aliases({ keys, looksAt }: TenantSource): Record<string, string> {
  return Object.fromEntries([...keys, ...looksAt].map((name, index) => [`#p${index}`, name]));
}

function keyOf({ keys }: TenantSource, row: StoredItem): StoredItem {
  return Object.fromEntries(Object.entries(row).filter(([name]) => keys.includes(name)));
}

async function named<Answer>(
  { tableName }: TenantSource,
  call: () => Promise<Answer>,
): Promise<Answer> {
  try {
    return await call();
  } catch (error) {
    const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    throw new Error(`${tableName}: ${reason}`, { cause: error });
  }
}
