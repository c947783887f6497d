import type { Database } from "../../base/types/database.ts";
import type { DueStore } from "../../parts/messages/due-jobs.ts";
import type { DuePlace } from "../../parts/messages/later.ts";
import { type Item, marshalled } from "./claim-form.ts";

/**
 * Creates a store of jobs that are due later, in DynamoDB. They are rows of the outbox table in
 * separate partitions.
 */
export function dynamoDueJobs(database: Database, tableName: string): DueStore {
  const keyOf = ({ shard, sort }: DuePlace): Item => marshalled({ pk: shard, sk: sort });
  return {
    begin: async (place) => {
      const { UpdateItemCommand } = await import("../clients/dynamodb-sdk.ts");
      const command = new UpdateItemCommand({
        TableName: tableName,
        Key: keyOf(place),
        UpdateExpression: "SET isSending = :yes",
        ConditionExpression: "attribute_exists(pk)",
        ExpressionAttributeValues: { ":yes": { BOOL: true } },
      });
      return holds(() => database.send(command));
    },
    takeBack: async (place, tenantId) => {
      const { DeleteItemCommand } = await import("../clients/dynamodb-sdk.ts");
      const isOurs =
        tenantId === undefined ? "attribute_not_exists(tenantId)" : "tenantId = :tenant";
      const command = new DeleteItemCommand({
        TableName: tableName,
        Key: keyOf(place),
        ConditionExpression: `attribute_exists(pk) AND attribute_not_exists(isSending) AND ${isOurs}`,
        ...(tenantId === undefined
          ? {}
          : { ExpressionAttributeValues: { ":tenant": { S: tenantId } } }),
      });
      return holds(() => database.send(command));
    },
  };
}

/** Runs a conditional write. Resolves to `false` if the condition failed. */
async function holds(write: () => Promise<unknown>): Promise<boolean> {
  try {
    await write();
    return true;
  } catch (error) {
    if (error instanceof Error && error.name === "ConditionalCheckFailedException") return false;
    throw error;
  }
}
