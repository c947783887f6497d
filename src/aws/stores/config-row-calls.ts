import type { BatchGetItemCommandInput, QueryCommandInput } from "@aws-sdk/client-dynamodb";
import type { RowAddress } from "../../parts/config/read/rows.ts";

/** A call that reads the rows at `addresses`, in DynamoDB's own types, so that it can be sent without the SDK. */
export type RowsCall = { readonly addresses: readonly RowAddress[] } & (
  | { readonly operation: "BatchGetItem"; readonly input: BatchGetItemCommandInput }
  | { readonly operation: "Query"; readonly input: QueryCommandInput }
);

export interface CallOptions {
  readonly tableName: string;
  readonly consistent: boolean;
  /** Number of keys in one partition from which a Query reads them. */
  readonly fewestPerQuery: number;
}

/** Limit of BatchGetItem. */
const mostPerBatch = 100;

/** A Query of up to 4 KB costs as much as one row of a batch, even one that does not exist. */
export function callsOf(addresses: readonly RowAddress[], options: CallOptions): RowsCall[] {
  const few: RowAddress[] = [];
  const calls: RowsCall[] = [];
  for (const group of Map.groupBy(addresses, ({ partition }) => partition).values()) {
    if (group.length < options.fewestPerQuery) few.push(...group);
    else calls.push(queryOf(group, options));
  }
  for (let start = 0; start < few.length; start += mostPerBatch)
    calls.push(batchOf(few.slice(start, start + mostPerBatch), options));
  return calls;
}

/** Limited, because the partition may also have rows of undeclared keys. */
function queryOf(
  addresses: readonly RowAddress[],
  { tableName, consistent }: CallOptions,
): RowsCall {
  const keys = addresses.map(({ key }) => key).sort();
  const [pk = "", first = "", last = ""] = [addresses[0]?.partition, keys[0], keys.at(-1)];
  const input = {
    TableName: tableName,
    ConsistentRead: consistent,
    KeyConditionExpression: "pk = :pk AND sk BETWEEN :first AND :last",
    ExpressionAttributeValues: { ":pk": { S: pk }, ":first": { S: first }, ":last": { S: last } },
    Limit: 2 * keys.length,
  };
  return { operation: "Query", input, addresses };
}

function batchOf(
  addresses: readonly RowAddress[],
  { tableName, consistent }: CallOptions,
): RowsCall {
  const Keys = addresses.map(({ partition, key }) => ({ pk: { S: partition }, sk: { S: key } }));
  const input = { RequestItems: { [tableName]: { Keys, ConsistentRead: consistent } } };
  return { operation: "BatchGetItem", input, addresses };
}
