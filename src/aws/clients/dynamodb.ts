import type { Database } from "../../base/types/database.ts";
import { type ClientOptions, clientOptions } from "./client-options.ts";
import type { DynamoDbSdk } from "./sdk-now.ts";

export async function openDatabase(options: ClientOptions): Promise<Database> {
  return createDatabase(await import("./dynamodb-sdk.ts"), options);
}

export function createDatabase(
  { DynamoDBClient, DynamoDBDocumentClient }: DynamoDbSdk,
  options: ClientOptions,
): Database {
  const client = new DynamoDBClient(clientOptions(options));
  options.measure?.(client);
  return DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
}
