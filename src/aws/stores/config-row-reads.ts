import type { Database } from "../../base/types/database.ts";
import { type CallOptions, callsOf, type RowsCall } from "./config-row-calls.ts";

type Item = Record<string, unknown>;
type CallOf<Operation> = Extract<RowsCall, { readonly operation: Operation }>;

export interface Sender {
  readonly database: Database;
  /** Waits before a retry. The first has number 1. */
  readonly wait?: ((attempt: number) => Promise<void>) | undefined;
}

const maxAttempts = 8;

/** Sends a call with the SDK, and further calls for the rows that it left. */
export async function sendRowsCall(
  sender: Sender,
  call: RowsCall,
  options: CallOptions,
): Promise<Item[]> {
  return call.operation === "Query"
    ? sendQuery(sender, call, options)
    : sendBatch(sender, call, options);
}

/**
 * A page ends after 1 MB, or after the limit of the call. Another Query follows if most rows were
 * requested. Otherwise, the partition has many rows of undeclared keys, which only a batch leaves out.
 */
async function sendQuery(
  sender: Sender,
  { input, addresses }: CallOf<"Query">,
  options: CallOptions,
): Promise<Item[]> {
  const { ItemQueryCommand, unmarshall } = await import("../clients/dynamodb-sdk.ts");
  const output = await sender.database.send(new ItemQueryCommand(input));
  const items: Item[] = (output.Items ?? []).map((item) => unmarshall(item));
  const last = output.LastEvaluatedKey?.["sk"]?.S;
  if (last === undefined) return items;
  const found = new Set(items.map(({ sk }) => sk));
  const requested = addresses.filter(({ key }) => found.has(key));
  const fewestPerQuery = 2 * requested.length > items.length ? options.fewestPerQuery : Infinity;
  const left = addresses.filter(({ key }) => key > last);
  for (const call of callsOf(left, { ...options, fewestPerQuery }))
    for (const item of await sendRowsCall(sender, call, options)) items.push(item);
  return items;
}

/** Requests keys again that DynamoDB left unprocessed: their rows may exist. */
async function sendBatch(
  { database, wait = backOff }: Sender,
  { input }: CallOf<"BatchGetItem">,
  { tableName }: CallOptions,
): Promise<Item[]> {
  const { BatchGetItemCommand, unmarshall } = await import("../clients/dynamodb-sdk.ts");
  const items: Item[] = [];
  let { RequestItems = {} } = input;
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    if (attempt > 0) await wait(attempt);
    const command = new BatchGetItemCommand({ RequestItems });
    const { Responses = {}, UnprocessedKeys = {} } = await database.send(command);
    items.push(...(Responses[tableName] ?? []).map((item) => unmarshall(item)));
    if (Object.keys(UnprocessedKeys).length === 0) return items;
    RequestItems = UnprocessedKeys;
  }
  const count = Object.values(RequestItems).flatMap(({ Keys }) => Keys).length;
  throw new Error(
    `DynamoDB left ${count} configuration rows unprocessed after ${maxAttempts} attempts; look for throttling of ${tableName}`,
  );
}

function backOff(attempt: number): Promise<void> {
  const limitMs = Math.min(1_000, 25 * 2 ** attempt);
  return new Promise((resolve) => setTimeout(resolve, Math.random() * limitMs));
}
