import type { Database } from "../../base/types/database.ts";
import { type AsideItem, asidePartition, itemBefore } from "./aside-item.ts";
import { tableOf, transact } from "./table.ts";

export type AsideStore = ReturnType<typeof dynamoAsideStore>;

export function dynamoAsideStore(database: Database, TableName: string) {
  const table = tableOf(database, TableName);
  return {
    list: async function* (): AsyncGenerator<AsideItem> {
      const pages = table.queryAll({
        KeyConditionExpression: "pk = :aside",
        ExpressionAttributeValues: { ":aside": asidePartition },
      });
      for await (const { Items = [] } of pages) yield* Items;
    },
    /** Puts an event back into its shard, where the next sweep finds it. */
    putBack: async (item: AsideItem): Promise<void> => {
      const before = itemBefore(item);
      if (before === undefined)
        throw new Error(`${JSON.stringify(item["sk"])} does not say which shard it came from`);
      // The condition lets only one of several processes put the event back.
      const Key = { pk: asidePartition, sk: item["sk"] };
      const away = { TableName, Key, ConditionExpression: "attribute_exists(pk)" };
      const failed = await transact(database, [
        { Put: { TableName, Item: before } },
        { Delete: away },
      ]);
      if (failed !== undefined) throw failed.error;
    },
    remove: async (item: AsideItem): Promise<void> => {
      await table.remove({ pk: asidePartition, sk: String(item["sk"]) });
    },
  };
}
