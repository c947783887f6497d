import type { ScanCommandInput, WriteRequest } from "@aws-sdk/client-dynamodb";
import type { StoredItem } from "../../app/tenants/stored-item.ts";
import type { TenantSource } from "../../app/tenants/tenant-source.ts";
import type { TenantRows } from "../../app/tenants/walk.ts";
import type { Database } from "../../base/types/database.ts";

/** How {@link dynamoTenantRows} goes about it. */
export interface TenantRowsOptions {
  /** How many rows a page looks at. Default: as many as fit into DynamoDB's 1 MB. */
  readonly pageSize?: number | undefined;
  /** Waits before an attempt, the first repetition being 1. */
  readonly wait: (attempt: number) => Promise<void>;
}

const maxAttempts = 10;

/** The rows of tenants in DynamoDB, in any table. */
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
        ...(keysOnly ? { ProjectionExpression: Object.keys(aliases(source)).join(", ") } : {}),
        ...(pageSize === undefined ? {} : { Limit: pageSize }),
        ...(from === undefined ? {} : { ExclusiveStartKey: { ...from } }),
      };
      const {
        Items = [],
        ScannedCount = 0,
        LastEvaluatedKey,
      } = await named(source, () => database.send(new ScanCommand(input)));
      return { items: Items, scanned: ScannedCount, next: LastEvaluatedKey };
    },
    remove: async (source, rows) => {
      const { BatchWriteItemCommand } = await import("@aws-sdk/client-dynamodb");
      // Without a condition: the key is the tenant's, or made of a hash of its own, so nobody else has a row there.
      let left: WriteRequest[] = rows.map((row) => ({
        DeleteRequest: { Key: keyOf(source, row) },
      }));
      for (let attempt = 0; left.length > 0; attempt += 1) {
        if (attempt === maxAttempts) {
          throw new Error(
            `${source.tableName}: ${left.length} rows were not deleted in ${maxAttempts} attempts; it is throttled`,
          );
        }
        if (attempt > 0) await wait(attempt);
        const command = new BatchWriteItemCommand({ RequestItems: { [source.tableName]: left } });
        const { UnprocessedItems = {} } = await named(source, () => database.send(command));
        left = UnprocessedItems[source.tableName] ?? [];
      }
    },
  };
}

/** Placeholders of the attributes that key and verdict are of. */
function aliases({ keys, looksAt }: TenantSource): Record<string, string> {
  return Object.fromEntries([...keys, ...looksAt].map((name, index) => [`#p${index}`, name]));
}

function keyOf({ keys }: TenantSource, row: StoredItem): StoredItem {
  return Object.fromEntries(Object.entries(row).filter(([name]) => keys.includes(name)));
}

/** @throws Error which says of what table DynamoDB speaks. */
async function named<Answer>(
  { tableName }: TenantSource,
  call: () => Promise<Answer>,
): Promise<Answer> {
  try {
    return await call();
  } catch (error) {
    throw new Error(
      `${tableName}: ${error instanceof Error ? `${error.name}: ${error.message}` : String(error)}`,
      {
        cause: error,
      },
    );
  }
}
