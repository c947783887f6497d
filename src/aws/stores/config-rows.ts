import type { Database } from "../../base/types/database.ts";
import type { ConfigRow, ConfigRowReader, RowAddress } from "../../parts/config/read/rows.ts";
import type { EarlyRows } from "../light/light-database.ts";
import { callsOf, type RowsCall } from "./config-row-calls.ts";
import type { Sender } from "./config-row-reads.ts";
import { tableOf } from "./table.ts";

/**
 * Number of keys in one partition from which a Query reads them: one level of the cascade, instead of
 * all levels in a BatchGetItem. At a cold start each call makes a connection, which takes time.
 */
const fewestPerQuery = { warm: 4, cold: 8 };
const mostCallsAtOnce = 25;

/** `early` reads without the SDK and is tried first. */
export function dynamoConfigRows(
  database: Database,
  tableName: string,
  { wait, early }: { wait?: Sender["wait"]; early?: Pick<EarlyRows, "read"> | undefined } = {},
): ConfigRowReader {
  const fewest = early === undefined ? fewestPerQuery.warm : fewestPerQuery.cold;
  return {
    read: async (addresses, { consistent = true } = {}) => {
      const options = { tableName, consistent, fewestPerQuery: fewest };
      const rows = new Map<string, ConfigRow>();
      const send = async (call: RowsCall) => {
        const items =
          (await early?.read(tableName, call)) ??
          (await (
            await import("./config-row-reads.ts")
          ).sendRowsCall({ database, wait }, call, options));
        for (const item of items) {
          // Safe: the resolver checks value and version against the declaration before it uses a row.
          rows.set(identity(item["pk"], item["sk"]), item as unknown as ConfigRow);
        }
      };
      const names = addresses.map(({ partition, key }) => identity(partition, key));
      // A tenant that was evicted and is read again in the same turn is asked for twice.
      const distinct = new Map(addresses.map((address, index) => [names[index], address]));
      const calls = callsOf([...distinct.values()], options);
      while (calls.length > 0) await Promise.all(calls.splice(0, mostCallsAtOnce).map(send));
      return names.map((name) => rows.get(name));
    },
  };
}

function identity(partition: unknown, key: unknown): string {
  return JSON.stringify([partition, key]);
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
