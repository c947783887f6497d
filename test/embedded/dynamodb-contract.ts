import {
  DeleteTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  type GlobalSecondaryIndexUpdate,
  UpdateTableCommand,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { QueryCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describeItems } from "./items-contract.ts";
import {
  type ContractCapabilities,
  type ContractConnection,
  type ContractTable,
  contractTable,
  fresh,
  keyOf,
  refusal,
} from "./table-contract.ts";
import { describeTransactions } from "./transactions-contract.ts";

/** How long an index may take to change. */
const patience = { timeout: 60_000, interval: 50 };

export type { ContractCapabilities, ContractConnection } from "./table-contract.ts";

/** What DynamoDB does and no emulator shows, so that no test against one can cover it. */
export const notShownByEmulators: readonly string[] = Object.freeze([
  "TransactionConflict: a write to an item inside somebody's running transaction fails; emulators make it wait",
  "throttling: ProvisionedThroughputExceededException and ThrottlingException never come",
  "unprocessed items: BatchWriteItem and BatchGetItem hand nothing back except above their size limits",
  "eventual consistency: a read without ConsistentRead, and a read of an index, are never behind",
  "expiry: expired items go within seconds or never, and in DynamoDB within days",
]);

/** Describes what keelson relies on DynamoDB for, as tests with the real AWS SDK. */
export function describeDynamoDbContract(
  name: string,
  connect: () => Promise<ContractConnection>,
  capabilities: ContractCapabilities,
): void {
  describe(`${name} as DynamoDB`, () => {
    let connection: ContractConnection;
    const table = contractTable(() => connection);

    beforeAll(async () => {
      connection = await connect();
      await table.create();
    });
    afterAll(async () => {
      await connection.client.send(new DeleteTableCommand({ TableName: table.name }));
      await connection.close();
    });

    describeItems(table);
    describeTransactions(table, capabilities);
    describeTables(table, capabilities);
  });
}

function describeTables(
  table: ContractTable,
  { refusesRepeatedTimeToLive }: ContractCapabilities,
): void {
  describe("tables", () => {
    test("a table that is there cannot be created again", async () => {
      expect((await refusal(table.create())).name).toBe("ResourceInUseException");
      const described = await table
        .client()
        .send(new DescribeTableCommand({ TableName: table.name }));
      expect(described.Table?.TableStatus).toBe("ACTIVE");
    });

    test("an index that is added has the items that were there, and one that is deleted is gone", async () => {
      const [state, pk] = [fresh(), fresh()];
      await table.put({ ...keyOf(pk), state, size: 1, owner: pk });
      const change = (update: GlobalSecondaryIndexUpdate) =>
        table.client().send(
          new UpdateTableCommand({
            TableName: table.name,
            AttributeDefinitions: ["pk", "sk", "state"].map((name) => ({
              AttributeName: name,
              AttributeType: "S",
            })),
            GlobalSecondaryIndexUpdates: [update],
          }),
        );
      const byState = {
        IndexName: "byState",
        KeySchema: [{ AttributeName: "state", KeyType: "HASH" as const }],
        Projection: { ProjectionType: "INCLUDE" as const, NonKeyAttributes: ["size"] },
      };
      const indexes = async () =>
        (
          await table.client().send(new DescribeTableCommand({ TableName: table.name }))
        ).Table?.GlobalSecondaryIndexes?.map(
          ({ IndexName, IndexStatus }) => `${IndexName} ${IndexStatus}`,
        ).toSorted();
      await change({ Create: byState });
      await expect.poll(indexes, patience).toEqual(["byOwner ACTIVE", "byState ACTIVE"]);
      const query = new QueryCommand({
        TableName: table.name,
        IndexName: "byState",
        KeyConditionExpression: "#s = :s",
        ExpressionAttributeNames: { "#s": "state" },
        ExpressionAttributeValues: { ":s": state },
      });
      expect((await table.documents().send(query)).Items).toEqual([
        { ...keyOf(pk), state, size: 1 },
      ]);
      expect((await refusal(change({ Create: byState }))).name).toBe("ValidationException");
      await change({ Delete: { IndexName: "byState" } });
      await expect.poll(indexes, patience).toEqual(["byOwner ACTIVE"]);
      expect((await refusal(table.documents().send(query))).name).toBe("ValidationException");
      expect(await table.ofOwner(pk)).toHaveLength(1);
    });

    test("time to live is switched on once, for one attribute", async () => {
      const expire = (attribute: string) =>
        table.client().send(
          new UpdateTimeToLiveCommand({
            TableName: table.name,
            TimeToLiveSpecification: { Enabled: true, AttributeName: attribute },
          }),
        );
      const describeTimeToLive = () =>
        table.client().send(new DescribeTimeToLiveCommand({ TableName: table.name }));
      expect((await describeTimeToLive()).TimeToLiveDescription?.TimeToLiveStatus).toBe("DISABLED");
      await expire("expiresAt");
      expect((await describeTimeToLive()).TimeToLiveDescription).toMatchObject({
        AttributeName: "expiresAt",
      });
      if (!refusesRepeatedTimeToLive) return;
      expect((await refusal(expire("expiresAt"))).message).toBe("TimeToLive is already enabled");
      expect((await refusal(expire("other"))).message).toContain(
        "TimeToLive is active on a different AttributeName",
      );
    });

    test("an item that has not expired stays", async () => {
      const item = { ...keyOf(fresh()), expiresAt: Math.floor(Date.now() / 1000) + 600 };
      await table.put(item);
      expect(await table.get(item.pk)).toEqual(item);
    });
  });
}
