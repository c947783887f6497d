import type { TransactWriteCommandInput } from "@aws-sdk/lib-dynamodb";
import type { Database } from "../../base/types/database.ts";
import type {
  ConfigStore,
  HistoryEntry,
  RowWrite,
} from "../../parts/config/operate/config-store.ts";
import { formerPlace, historyPartition, type RowAddress } from "../../parts/config/read/rows.ts";
import { dynamoConfigRows } from "./config-rows.ts";
import type { FormerRows } from "./former-rows.ts";
import { dynamoSealedRows } from "./sealed-rows.ts";

/** Number of digits of the largest version, so that versions sort as strings. */
const versionDigits = 16;
const maxVersion = Number.MAX_SAFE_INTEGER;

/**
 * Creates a store of configuration rows with their history in DynamoDB. A history entry has the key
 * `<key>#<version>` in the separate partition `history#<partition of the row>`. Reads of rows
 * therefore never include history, and a key's entries are adjacent and ordered by version.
 */
export function dynamoConfigStore(
  database: Database,
  tableName: string,
  { wait = jitter, former }: ConfigStoreOptions = {},
): ConfigStore {
  const rows = dynamoConfigRows(database, tableName);
  const history = historyOf(database, tableName);
  const itemsOf = (write: RowWrite) => [
    ...itemsOfRow(tableName, write),
    ...(former?.itemsOf(write) ?? []),
  ];
  return {
    read: (former?.reader(rows) ?? rows).read,
    ...dynamoSealedRows(database, tableName),
    itemsOf,
    write: async (write) => {
      const { TransactWriteCommand } = await import("../clients/dynamodb-sdk.ts");
      try {
        await database.send(new TransactWriteCommand({ TransactItems: itemsOf(write) }));
        return true;
      } catch (error) {
        const codes = cancellations(error);
        if (!codes.includes("ConditionalCheckFailed") && !codes.includes("TransactionConflict"))
          throw error;
        await wait();
        return false;
      }
    },
    history: former?.history(history) ?? history,
  };
}

export interface ConfigStoreOptions {
  /** Waits after a write that conflicted with another. */
  readonly wait?: () => Promise<void>;
  /** Present if a key was renamed. */
  readonly former?: FormerRows | undefined;
}

function historyOf(database: Database, tableName: string): ConfigStore["history"] {
  return async (address, { before, limit }) => {
    const newest = before === undefined ? maxVersion : before - 1;
    if (newest < 0) return [];
    const { QueryCommand } = await import("../clients/dynamodb-sdk.ts");
    const entries: Record<string, unknown>[] = [];
    let from: Record<string, unknown> | undefined;
    // A response is limited to 1 MB, which sixty of the largest values fill.
    do {
      const { Items = [], LastEvaluatedKey } = await database.send(
        new QueryCommand({
          TableName: tableName,
          KeyConditionExpression: "pk = :partition AND sk BETWEEN :oldest AND :newest",
          ExpressionAttributeValues: {
            ":partition": historyPartition(address.partition),
            ":oldest": historyKey(address, 0),
            ":newest": historyKey(address, newest),
          },
          ScanIndexForward: false,
          Limit: limit - entries.length,
          ConsistentRead: true,
          ...(from === undefined ? {} : { ExclusiveStartKey: from }),
        }),
      );
      entries.push(...Items);
      from = LastEvaluatedKey;
    } while (from !== undefined && entries.length < limit);
    // Safe: only `write` puts items there.
    return entries as unknown as HistoryEntry[];
  };
}

/**
 * Returns the puts of the row, conditional on the version that was read, and of its history entry.
 */
function itemsOfRow(
  tableName: string,
  { address, tenantId, row, entry, seen }: RowWrite,
): NonNullable<TransactWriteCommandInput["TransactItems"]> {
  const place = seen?.[formerPlace];
  const version = (place === undefined ? seen : place.own)?.version;
  const condition =
    version === undefined
      ? { ConditionExpression: "attribute_not_exists(version)" }
      : { ConditionExpression: "version = :seen", ExpressionAttributeValues: { ":seen": version } };
  const owner = tenantId === undefined ? {} : { tenantId };
  return [
    {
      Put: {
        TableName: tableName,
        Item: { pk: address.partition, sk: address.key, ...owner, ...row },
        ...condition,
      },
    },
    {
      Put: {
        TableName: tableName,
        Item: {
          pk: historyPartition(address.partition),
          sk: historyKey(address, row.version),
          ...owner,
          ...entry,
        },
      },
    },
  ];
}

/** Returns the sort key of a history entry. Key identifiers never contain `#`. */
function historyKey({ key }: RowAddress, version: number): string {
  return `${key}#${String(version).padStart(versionDigits, "0")}`;
}

/**
 * Returns the cancellation codes of a transaction, one per item; an empty list for any other error.
 */
function cancellations(error: unknown): readonly unknown[] {
  const isCancelled = error instanceof Error && error.name === "TransactionCanceledException";
  if (
    !isCancelled ||
    !("CancellationReasons" in error) ||
    !Array.isArray(error.CancellationReasons)
  )
    return [];
  return error.CancellationReasons.map((reason: { readonly Code?: unknown }) => reason.Code);
}

function jitter(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * 50));
}
