import type { Database } from "../../base/types/database.ts";
import type { DueStore } from "../../parts/messages/due-jobs.ts";
import { tableOf } from "./table.ts";

/** Creates a store of jobs that are due later, in separate partitions of the outbox table. */
export function dynamoDueJobs(database: Database, tableName: string): DueStore {
  const table = tableOf(database, tableName);
  return {
    begin: async ({ shard, sort }) => {
      const begun = await table.update(
        { pk: shard, sk: sort },
        {
          UpdateExpression: "SET isSending = :yes",
          ConditionExpression: "attribute_exists(pk)",
          ExpressionAttributeValues: { ":yes": { BOOL: true } },
        },
      );
      return begun !== undefined;
    },
    takeBack: ({ shard, sort }, tenantId) => {
      const isOurs =
        tenantId === undefined ? "attribute_not_exists(tenantId)" : "tenantId = :tenant";
      const tenant = tenantId && { ExpressionAttributeValues: { ":tenant": { S: tenantId } } };
      const ConditionExpression = `attribute_exists(pk) AND attribute_not_exists(isSending) AND ${isOurs}`;
      return table.remove({ pk: shard, sk: sort }, { ConditionExpression, ...tenant });
    },
  };
}
