import type { TransactWriteCommandInput } from "@aws-sdk/lib-dynamodb";
import type { Database } from "../../base/types/database.ts";
import type {
  ConfigStore,
  HistoryEntry,
  RowWrite,
} from "../../parts/config/operate/operator-session.ts";
import { formerPlace, historyPartition, type RowAddress } from "../../parts/config/read/rows.ts";
import { dynamoConfigRows } from "./config-rows.ts";
import type { FormerRows } from "./former-rows.ts";
import { dynamoSealedRows } from "./sealed-rows.ts";
import { pagesOf, tableOf, transact } from "./table.ts";

/** Digits of the largest version, so that versions sort as strings. */
const versionDigits = 16;
const maxVersion = Number.MAX_SAFE_INTEGER;

/**
 * Stores configuration rows, and their history under `<key>#<version>` in the separate partition
 * `history#<partition of the row>`, where a key's entries are ordered by version.
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
      const failed = await transact(database, itemsOf(write));
      if (failed === undefined) return true;
      const { codes, error } = failed;
      if (!codes.includes("ConditionalCheckFailed") && !codes.includes("TransactionConflict"))
        throw error;
      await wait();
      return false;
    },
    history: former?.history(history) ?? history,
  };
}

export interface ConfigStoreOptions {
  /** Waits after a write that conflicted with another. */
  readonly wait?: () => Promise<void>;
  /** Rows of renamed keys. Absent if no key has a former name. */
  readonly former?: FormerRows | undefined;
}

function historyOf(database: Database, tableName: string): ConfigStore["history"] {
  const table = tableOf(database, tableName);
  return async (address, { before, limit }) => {
    const newest = before === undefined ? maxVersion : before - 1;
    if (newest < 0) return [];
    const entries: Record<string, unknown>[] = [];
    const read = (start: object) =>
      table.query({
        KeyConditionExpression: "pk = :partition AND sk BETWEEN :oldest AND :newest",
        ExpressionAttributeValues: {
          ":partition": historyPartition(address.partition),
          ":oldest": historyKey(address, 0),
          ":newest": historyKey(address, newest),
        },
        ScanIndexForward: false,
        Limit: limit - entries.length,
        ...start,
      });
    // A response is limited to 1 MB, which sixty of the largest values fill.
    for await (const { Items = [] } of pagesOf(read)) {
      entries.push(...Items);
      if (entries.length >= limit) break;
    }
    // Safe: only `write` puts items into the history.
    return entries as unknown as HistoryEntry[];
  };
}

/** Puts the row, if it still has the version that was read, and its history entry. */
function itemsOfRow(
  TableName: string,
  { address, tenantId, row, entry, seen }: RowWrite,
): NonNullable<TransactWriteCommandInput["TransactItems"]> {
  const place = seen?.[formerPlace];
  const version = (place === undefined ? seen : place.own)?.version;
  const condition =
    version === undefined
      ? { ConditionExpression: "attribute_not_exists(version)" }
      : { ConditionExpression: "version = :seen", ExpressionAttributeValues: { ":seen": version } };
  const owner = tenantId === undefined ? {} : { tenantId };
  const key = { pk: address.partition, sk: address.key };
  const past = { pk: historyPartition(address.partition), sk: historyKey(address, row.version) };
  return [
    { Put: { TableName, Item: { ...key, ...owner, ...row }, ...condition } },
    { Put: { TableName, Item: { ...past, ...owner, ...entry } } },
  ];
}

/** Unambiguous, because key identifiers never contain `#`. */
function historyKey({ key }: RowAddress, version: number): string {
  return `${key}#${String(version).padStart(versionDigits, "0")}`;
}

function jitter(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * 50));
}
