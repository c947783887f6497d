import type { Database } from "../../base/types/database.ts";
import { type AsideItem, asidePartition, itemBefore } from "./aside-item.ts";
import { marshalled } from "./claim-form.ts";

export type AsideStore = ReturnType<typeof dynamoAsideStore>;

export function dynamoAsideStore(database: Database, tableName: string) {
  return {
    list: async function* (): AsyncGenerator<AsideItem> {
      const { QueryCommand } = await import("../clients/dynamodb-sdk.ts");
      let from: Record<string, unknown> | undefined;
      do {
        const { Items = [], LastEvaluatedKey } = await database.send(
          new QueryCommand({
            TableName: tableName,
            KeyConditionExpression: "pk = :aside",
            ExpressionAttributeValues: { ":aside": asidePartition },
            ExclusiveStartKey: from,
            ConsistentRead: true,
          }),
        );
        yield* Items;
        from = LastEvaluatedKey;
      } while (from !== undefined);
    },
    /** Puts an event back into its shard, where the next sweep finds it. */
    putBack: async (item: AsideItem): Promise<void> => {
      const before = itemBefore(item);
      if (before === undefined)
        throw new Error(`${JSON.stringify(item["sk"])} does not say which shard it came from`);
      const { TransactWriteCommand } = await import("../clients/dynamodb-sdk.ts");
      // The condition lets only one of several processes put the event back.
      const Key = { pk: asidePartition, sk: item["sk"] };
      const away = { TableName: tableName, Key, ConditionExpression: "attribute_exists(pk)" };
      await database.send(
        new TransactWriteCommand({
          TransactItems: [{ Put: { TableName: tableName, Item: before } }, { Delete: away }],
        }),
      );
    },
    remove: async (item: AsideItem): Promise<void> => {
      const { DeleteItemCommand } = await import("../clients/dynamodb-sdk.ts");
      const Key = marshalled({ pk: asidePartition, sk: String(item["sk"]) });
      await database.send(new DeleteItemCommand({ TableName: tableName, Key }));
    },
  };
}
