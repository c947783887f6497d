import type { Database } from "../context/pipeline-context.ts";

/** Where DynamoDB is, where that is not AWS's own endpoint of the region. */
export interface DynamoDbOptions {
  readonly endpoint?: string | undefined;
  readonly region?: string | undefined;
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string } | undefined;
}

/** Opens a DynamoDB document client. The SDK is loaded here, and only here. */
export async function openDatabase({ endpoint, region, credentials }: DynamoDbOptions): Promise<Database> {
  const { DynamoDBClient, DynamoDBDocumentClient } = await import("./dynamodb-sdk.ts");
  const client = new DynamoDBClient({
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(region === undefined ? {} : { region }),
    ...(credentials === undefined ? {} : { credentials }),
  });
  return DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
}
