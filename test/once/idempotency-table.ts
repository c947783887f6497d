import { createHash } from "node:crypto";
import {
  type AttributeValue,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
} from "@aws-sdk/client-dynamodb";
import { openDatabase } from "../../src/aws/clients/dynamodb.ts";
import { ensureTables } from "../../src/aws/tables/tables.ts";
import { startEmbeddedStack } from "../../src/embedded/stack/index.ts";

/** A table as functions of plain Powertools have it, partition key `id`. */
export interface IdempotencyTable {
  readonly tableName: string;
  /** A separate client, which a test may disturb. */
  client(): DynamoDBClient;
  put(item: Record<string, AttributeValue>): Promise<void>;
  get(id: string): Promise<Record<string, AttributeValue> | undefined>;
  close(): Promise<void>;
}

export async function startIdempotencyTable(): Promise<IdempotencyTable> {
  const stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  const tableName = "idempotency";
  const options = {
    endpoint: stack.endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "x", secretAccessKey: "x" },
    maxAttempts: 2,
  };
  const database = await openDatabase(options);
  await ensureTables(
    database,
    [{ name: tableName, tableName, partitionKey: "id", sortKey: undefined, indexes: [] }],
    "create",
  );
  database.destroy();
  const clients: DynamoDBClient[] = [];
  const client = () => {
    const opened = new DynamoDBClient(options);
    clients.push(opened);
    return opened;
  };
  const own = client();
  return {
    tableName,
    client,
    put: async (item) => {
      await own.send(new PutItemCommand({ TableName: tableName, Item: item }));
    },
    get: async (id) =>
      (
        await own.send(
          new GetItemCommand({
            TableName: tableName,
            Key: { id: { S: id } },
            ConsistentRead: true,
          }),
        )
      ).Item,
    close: async () => {
      for (const opened of clients) opened.destroy();
      await stack.close();
    },
  };
}

/** The key of a record, as Powertools makes it of what `eventKeyJmesPath` selects, outside of Lambda. */
export function keyOf(selected: unknown): string {
  return `#${hashOf(selected)}`;
}

/** The hash of the validated payload, computed like in Powertools. */
export function hashOf(selected: unknown): string {
  return createHash("md5").update(JSON.stringify(selected)).digest("base64");
}
