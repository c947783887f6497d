import type { ScheduleStore } from "../../app/schedules/schedule-store.ts";
import type { Database } from "../../base/types/database.ts";
import type { ClaimKey } from "../../parts/once/claim.ts";
import { type Item, marshalled } from "./claim-form.ts";
import { isNamed } from "./claim-store.ts";

const isFree = "lastMs < :at AND (attribute_not_exists(begunMs) OR begunMs = :at)";
const settled = "SET lastMs = :at REMOVE begunMs, attempts, retryMs";

/** Stores schedules in the table of claims. They do not expire: two fires may be a year apart. */
export function dynamoSchedules(database: Database, tableName: string): ScheduleStore {
  /** Returns the written attributes; `undefined` if the condition failed. */
  const update = async (
    { partition, sort }: ClaimKey,
    UpdateExpression: string,
    ConditionExpression: string,
    values: Readonly<Record<string, number>>,
  ): Promise<Item | undefined> => {
    const { UpdateItemCommand } = await import("../clients/dynamodb-sdk.ts");
    const command = new UpdateItemCommand({
      TableName: tableName,
      Key: marshalled({ pk: partition, sk: sort }),
      UpdateExpression,
      ConditionExpression,
      ExpressionAttributeValues: marshalled(values),
      ReturnValues: "UPDATED_NEW",
    });
    try {
      return (await database.send(command)).Attributes as Item; // safe: `ReturnValues` requests them
    } catch (error) {
      if (isNamed(error, "ConditionalCheckFailedException")) return undefined;
      throw error;
    }
  };

  const read: ScheduleStore["read"] = async ({ partition, sort }) => {
    const { GetItemCommand } = await import("../clients/dynamodb-sdk.ts");
    const Key = marshalled({ pk: partition, sk: sort });
    const { Item } = await database.send(
      new GetItemCommand({ TableName: tableName, Key, ConsistentRead: true }),
    );
    if (Item === undefined) return undefined;
    const number = (name: string) => Number(Item[name]?.N ?? 0);
    const lastMs = number("lastMs");
    if (Item["begunMs"] === undefined) return { lastMs };
    return {
      lastMs,
      begun: { atMs: number("begunMs"), attempts: number("attempts"), retryMs: number("retryMs") },
    };
  };
  return {
    read,
    add: async (key, lastMs) => {
      await update(key, "SET lastMs = :last", "attribute_not_exists(lastMs)", { ":last": lastMs });
    },
    begin: async (key, atMs) => {
      const begun = await update(key, "SET begunMs = :at ADD attempts :one", isFree, {
        ":at": atMs,
        ":one": 1,
      });
      return begun === undefined ? undefined : Number(begun["attempts"]?.N);
    },
    postpone: async (key, { atMs, attempts, retryMs }) => {
      const values = { ":at": atMs, ":attempts": attempts, ":retry": retryMs };
      await update(key, "SET retryMs = :retry", "begunMs = :at AND attempts = :attempts", values);
    },
    giveUp: async (key, { atMs, attempts }) => {
      const values = { ":at": atMs, ":attempts": attempts };
      return (
        (await update(key, settled, "begunMs = :at AND attempts = :attempts", values)) !== undefined
      );
    },
    pass: async (key, lastMs, atMs) => {
      const isAsRead = "lastMs = :last AND attribute_not_exists(begunMs)";
      return (
        (await update(key, "SET lastMs = :at", isAsRead, { ":last": lastMs, ":at": atMs })) !==
        undefined
      );
    },
    skip: async (key, atMs) => {
      await update(key, settled, isFree, { ":at": atMs });
    },
    done: ({ partition, sort }, atMs) => ({
      Update: {
        TableName: tableName,
        Key: { pk: partition, sk: sort },
        UpdateExpression: settled,
        ExpressionAttributeValues: { ":at": atMs },
      },
    }),
  };
}
