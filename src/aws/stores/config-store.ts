import type { TransactWriteCommandInput } from "@aws-sdk/lib-dynamodb";
import { ValidationError } from "../../base/errors/errors.ts";
import { isSealed } from "../../base/secrets/sealed.ts";
import type { Database } from "../../base/types/database.ts";
import type {
  ConfigStore,
  HistoryEntry,
  RowWrite,
} from "../../parts/config/operate/operator-session.ts";
import type { SealedRow } from "../../parts/config/read/row-cipher.ts";
import { formerPlace, historyPartition, type RowAddress } from "../../parts/config/read/rows.ts";
import { dynamoConfigRows } from "./config-rows.ts";
import type { FormerRows } from "./former-rows.ts";
import { isNamed, pagesOf, tableOf, transact } from "./table.ts";

/** Digits of the largest version, so that versions sort as strings. */
const versionDigits = 16;
const maxVersion = Number.MAX_SAFE_INTEGER;

/**
 * Rows have their history under `<key>#<version>` in the partition `history#<partition of the
 * row>`, where a key's entries are ordered by version.
 */
export function dynamoConfigStore(
  database: Database,
  tableName: string,
  {
    wait = jitter,
    former,
  }: {
    /** Waits after a write that conflicted with another. */
    readonly wait?: () => Promise<void>;
    /** Rows of renamed keys. Absent if no key has a former name. */
    readonly former?: FormerRows | undefined;
  } = {},
): ConfigStore {
  const rows = dynamoConfigRows(database, tableName);
  const history = historyOf(database, tableName);
  const itemsOf = (write: RowWrite) => [
    ...itemsOfRow(tableName, write),
    ...(former?.itemsOf(write) ?? []),
  ];
  return {
    read: (former?.reader(rows) ?? rows).read,
    ...sealedRowsOf(database, tableName),
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
    history: former?.history(history, rows) ?? history,
  };
}

function historyOf(database: Database, tableName: string): ConfigStore["history"] {
  const table = tableOf(database, tableName);
  return async (address, { before, limit }) => {
    const newest = before === undefined ? maxVersion : before - 1;
    if (newest < 0) return [];
    const entries: HistoryEntry[] = [];
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
      entries.push(...(Items as HistoryEntry[])); // safe: only `write` puts items there
      if (entries.length >= limit) break;
    }
    return entries;
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

/** Items per scan, and so the most that an interrupted rotation repeats. */
const pageSize = 100;

function sealedRowsOf(
  database: Database,
  tableName: string,
): Pick<ConfigStore, "sealedRows" | "reseal"> {
  const table = tableOf(database, tableName);
  return {
    sealedRows: async (from) => {
      const page = await table.scan({
        Limit: pageSize,
        FilterExpression: "begins_with(pk, :rows) AND attribute_exists(#value.#sealed)",
        ExpressionAttributeNames: { "#value": "value", "#sealed": "sealed" },
        ExpressionAttributeValues: { ":rows": "config#" },
        ExclusiveStartKey: from === undefined ? undefined : startKey(from),
      });
      const { Items = [], ScannedCount = 0, LastEvaluatedKey: last } = page;
      const next = last && { next: cursorOf(last) };
      return { rows: Items.flatMap(sealedRow), scanned: ScannedCount, ...next };
    },
    reseal: async ({ address, version, value: { key, data } }, value) => {
      const { UpdateCommand } = await import("../clients/dynamodb-sdk.ts");
      // No two encrypted values have the same bytes, so `data` identifies the value that was read. A
      // row without a version must still lack one: its value does not decrypt under a version that
      // was added by hand.
      const isSameVersion =
        version === undefined ? "NOT attribute_type(version, :number)" : "version = :version";
      const isSeen = "#value.#key = :key AND #value.#data = :data";
      // A retry of the SDK whose first response was lost.
      const isDone = "#value.#key = :newKey AND #value.#data = :newData";
      const seen = `((${isSeen}) OR (${isDone})) AND ${isSameVersion}`;
      try {
        await database.send(
          new UpdateCommand({
            TableName: tableName,
            Key: { pk: address.partition, sk: address.key },
            UpdateExpression: "SET #value = :value",
            ConditionExpression: seen,
            ExpressionAttributeNames: { "#value": "value", "#key": "key", "#data": "data" },
            ExpressionAttributeValues: {
              ":value": value,
              ":key": key,
              ":data": data,
              ":newKey": value.key,
              ":newData": value.data,
              ...(version === undefined ? { ":number": "N" } : { ":version": version }),
            },
          }),
        );
        return true;
      } catch (error) {
        if (isNamed(error, "ConditionalCheckFailedException", "TransactionConflictException"))
          return false;
        throw error;
      }
    },
  };
}

function sealedRow({ pk, sk, version, value }: Record<string, unknown>): SealedRow[] {
  if (!isSealed(value)) return [];
  const address = { partition: String(pk), key: String(sk) };
  return [{ address, version: typeof version === "number" ? version : undefined, value }];
}

function cursorOf({ pk, sk }: Record<string, unknown>): string {
  return Buffer.from(JSON.stringify([pk, sk])).toString("base64url");
}

function startKey(cursor: string): Record<string, unknown> {
  try {
    const [pk, sk] = JSON.parse(Buffer.from(cursor, "base64url").toString()) as unknown[];
    if (typeof pk === "string" && typeof sk === "string") return { pk, sk };
  } catch {
    // Falls through to the error below.
  }
  throw new ValidationError([{ field: "from", error: "is not the `next` of an earlier progress" }]);
}
