import { randomBytes } from "node:crypto";
import {
  CreateTableCommand,
  type DynamoDBClient,
  waitUntilTableExists,
} from "@aws-sdk/client-dynamodb";
import {
  type DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  QueryCommand,
  TransactWriteCommand,
  type TransactWriteCommandInput,
} from "@aws-sdk/lib-dynamodb";

/** One connection to the DynamoDB under test. */
export interface ContractConnection {
  readonly documents: DynamoDBDocumentClient;
  readonly client: DynamoDBClient;
  close(): Promise<void>;
}

/** Where implementations are known to differ. */
export interface ContractCapabilities {
  /** A rule that only the stored item shows broken cancels the transaction with reason `ValidationError`, as DynamoDB documents. */
  readonly validationReasons: boolean;
  /** The 4 MB of a transaction are the items', not only the request's. */
  readonly countsStoredItems: boolean;
  /** Time to live that is switched on already is not switched on again. */
  readonly refusesRepeatedTimeToLive: boolean;
}

/** A table of the contract's own, with what most of its tests do with it. */
export type ContractTable = ReturnType<typeof contractTable>;

/** Makes a {@link ContractTable}; the connection is asked for when a test uses it. */
export function contractTable(connection: () => ContractConnection) {
  const name = `contract-${fresh()}`;
  const documents = () => connection().documents;
  return {
    name,
    documents,
    client: () => connection().client,
    get: async (pk: string, sk = "-") =>
      (
        await documents().send(
          new GetCommand({ TableName: name, Key: keyOf(pk, sk), ConsistentRead: true }),
        )
      ).Item,
    put: (item: Record<string, unknown>) =>
      documents().send(new PutCommand({ TableName: name, Item: item })),
    /** The items in the index under an owner. */
    ofOwner: async (owner: string) => {
      const query = new QueryCommand({
        TableName: name,
        IndexName: "byOwner",
        KeyConditionExpression: "#o = :o",
        ExpressionAttributeNames: { "#o": "owner" },
        ExpressionAttributeValues: { ":o": owner },
      });
      return (await documents().send(query)).Items;
    },
    transact: (items: TransactWriteCommandInput["TransactItems"], token?: string) =>
      documents().send(
        new TransactWriteCommand({
          TransactItems: items,
          ...(token === undefined ? {} : { ClientRequestToken: token }),
        }),
      ),
    create: () => createContractTable(connection().client, name),
  };
}

/** A name that nothing has yet. */
export function fresh(): string {
  return randomBytes(6).toString("hex");
}

/** The key of an item of the contract's table. */
export function keyOf(pk: string, sk = "-"): { pk: string; sk: string } {
  return { pk, sk };
}

/** The error that a call is refused with. */
export function refusal(call: Promise<unknown>): Promise<Error> {
  return call.then(
    () => {
      throw new Error("expected a refusal");
    },
    (error: Error) => error,
  );
}

async function createContractTable(client: DynamoDBClient, table: string): Promise<void> {
  await client.send(
    new CreateTableCommand({
      TableName: table,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: ["pk", "sk", "owner"].map((name) => ({
        AttributeName: name,
        AttributeType: "S" as const,
      })),
      KeySchema: [
        { AttributeName: "pk", KeyType: "HASH" },
        { AttributeName: "sk", KeyType: "RANGE" },
      ],
      GlobalSecondaryIndexes: [
        {
          IndexName: "byOwner",
          KeySchema: [
            { AttributeName: "owner", KeyType: "HASH" },
            { AttributeName: "sk", KeyType: "RANGE" },
          ],
          Projection: { ProjectionType: "ALL" },
        },
      ],
    }),
  );
  await waitUntilTableExists({ client, maxWaitTime: 60, minDelay: 1 }, { TableName: table });
}
