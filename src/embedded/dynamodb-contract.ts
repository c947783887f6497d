import {
  DeleteTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
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

function describeTables(table: ContractTable, { refusesRepeatedTimeToLive }: ContractCapabilities): void {
  describe("tables", () => {
    test("a table that is there cannot be created again", async () => {
      expect((await refusal(table.create())).name).toBe("ResourceInUseException");
      const described = await table.client().send(new DescribeTableCommand({ TableName: table.name }));
      expect(described.Table?.TableStatus).toBe("ACTIVE");
    });

    test("time to live is switched on once, for one attribute", async () => {
      const expire = (attribute: string) =>
        table.client().send(
          new UpdateTimeToLiveCommand({
            TableName: table.name,
            TimeToLiveSpecification: { Enabled: true, AttributeName: attribute },
          }),
        );
      const describeTimeToLive = () => table.client().send(new DescribeTimeToLiveCommand({ TableName: table.name }));
      expect((await describeTimeToLive()).TimeToLiveDescription?.TimeToLiveStatus).toBe("DISABLED");
      await expire("expiresAt");
      expect((await describeTimeToLive()).TimeToLiveDescription).toMatchObject({ AttributeName: "expiresAt" });
      if (!refusesRepeatedTimeToLive) return;
      expect((await refusal(expire("expiresAt"))).message).toBe("TimeToLive is already enabled");
      expect((await refusal(expire("other"))).message).toContain("TimeToLive is active on a different AttributeName");
    });

    test("an item that has not expired stays", async () => {
      const item = { ...keyOf(fresh()), expiresAt: Math.floor(Date.now() / 1000) + 600 };
      await table.put(item);
      expect(await table.get(item.pk)).toEqual(item);
    });
  });
}
