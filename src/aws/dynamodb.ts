import type { Database } from "../context/database.ts";
import { type ClientOptions, clientOptions } from "./client-options.ts";

/** Opens a DynamoDB document client. The SDK is loaded here, and only here. */
export async function openDatabase(options: ClientOptions): Promise<Database> {
  const { DynamoDBClient, DynamoDBDocumentClient } = await import("./dynamodb-sdk.ts");
  const client = new DynamoDBClient(clientOptions(options));
  return DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
}
