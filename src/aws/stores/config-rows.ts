import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import type { Database } from "../../base/types/database.ts";
import type { ConfigRow, ConfigRowReader, RowAddress } from "../../parts/config/read/rows.ts";
import type { EarlyRows } from "../light/light-database.ts";
import { tableOf } from "./table.ts";

const maxKeysPerCall = 100;
const maxAttempts = 8;

/** `early` reads without the SDK and is tried first. */
export function dynamoConfigRows(
  database: Database,
  tableName: string,
  { wait = backOff, early }: Partial<Pick<Source, "wait" | "early">> = {},
): ConfigRowReader {
  return {
    read: async (addresses, { consistent = true } = {}) => {
      const source = { database, tableName, wait, early, consistent };
      const rows = new Map<string, ConfigRow>();
      for (let start = 0; start < addresses.length; start += maxKeysPerCall)
        await readChunk(source, addresses.slice(start, start + maxKeysPerCall), rows);
      return addresses.map(({ partition, key }) => rows.get(identity(partition, key)));
    },
  };
}

interface Source {
  readonly database: Database;
  readonly tableName: string;
  /** Waits before a retry. The first has number 1. */
  readonly wait: (attempt: number) => Promise<void>;
  readonly early: EarlyRows | undefined;
  readonly consistent: boolean;
}

/** Requests keys again that DynamoDB left unprocessed: their rows may exist. */
async function readChunk(
  { database, tableName, wait, early, consistent }: Source,
  addresses: readonly RowAddress[],
  rows: Map<string, ConfigRow>,
): Promise<void> {
  const items = await early?.read(tableName, addresses, consistent);
  if (items !== undefined) return keep(items, rows);
  const { BatchGetItemCommand, unmarshall } = await import("../clients/dynamodb-sdk.ts");
  let keys: Record<string, AttributeValue>[] = addresses.map(({ partition, key }) => ({
    pk: { S: partition },
    sk: { S: key },
  }));
  for (let attempt = 0; keys.length > 0; attempt++) {
    if (attempt === maxAttempts) {
      throw new Error(
        `DynamoDB left ${keys.length} configuration rows unprocessed after ${maxAttempts} attempts; look for throttling of ${tableName}`,
      );
    }
    if (attempt > 0) await wait(attempt);
    const RequestItems = { [tableName]: { Keys: keys, ConsistentRead: consistent } };
    const { Responses = {}, UnprocessedKeys = {} } = await database.send(
      new BatchGetItemCommand({ RequestItems }),
    );
    const found = (Responses[tableName] ?? []).map((stored) => unmarshall(stored));
    keep(found, rows);
    keys = UnprocessedKeys[tableName]?.Keys ?? [];
  }
}

function keep(items: readonly Record<string, unknown>[], rows: Map<string, ConfigRow>): void {
  for (const item of items) {
    // Safe: the resolver checks value and version against the declaration before it uses a row.
    rows.set(identity(String(item["pk"]), String(item["sk"])), item as unknown as ConfigRow);
  }
}

function identity(partition: string, key: string): string {
  return JSON.stringify([partition, key]);
}

function backOff(attempt: number): Promise<void> {
  const limitMs = Math.min(1_000, 25 * 2 ** attempt);
  return new Promise((resolve) => setTimeout(resolve, Math.random() * limitMs));
}

/**
 * Reads every configuration row of the table. A concurrent write may appear or not.
 * @throws Error that names the table.
 */
export async function* allConfigRows(
  database: Database,
  tableName: string,
): AsyncGenerator<{ readonly rows: ReturnType<typeof rowOf>[]; readonly scanned: number }> {
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

function rowOf({ pk, sk, ...row }: Record<string, unknown>) {
  const address: RowAddress = { partition: String(pk), key: String(sk) };
  return { address, row: row as unknown as ConfigRow }; // safe: readers check value and version
}
