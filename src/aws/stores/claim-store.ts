import type { TransactWriteCommandInput } from "@aws-sdk/lib-dynamodb";
import type { Database } from "../../base/types/database.ts";
import { type ClaimInProgress, type ClaimKey, skewMs } from "../../parts/once/claim.ts";
import type { ClaimStore } from "../../parts/once/claim-store.ts";
import {
  type ClaimForm,
  completion,
  holding,
  type Item,
  isFree,
  marshalled,
  ownedInProgress,
  ownedKey,
  ownedNames,
  ownForm,
} from "./claim-form.ts";

/** Parts read at the same time, with one GetItem call each. */
const partsPerRead = 25;

const names = { "#status": "status" };

export interface DynamoClaimStore extends ClaimStore {
  /** Replaces the claim that `from` holds in progress. Resolves to `false` if it no longer does. */
  adopt(key: ClaimKey, claim: ClaimInProgress, from: string): Promise<boolean>;
}

export interface DynamoClaimOptions {
  /** Storage format. Default: the format of keelson's own table. */
  readonly form?: ClaimForm | undefined;
  /** Returns the client that commits a tenant's run. Default: the client for all other calls. */
  readonly committing?: ((tenantId: string) => Database) | undefined;
}

/**
 * Creates a claim store in DynamoDB. Its conditions match `judge` in claim.ts. TTL deletes items
 * days late, so every condition checks the expiry.
 */
export function dynamoClaimStore(
  database: Database,
  tableName: string,
  { form = ownForm, committing = () => database }: DynamoClaimOptions = {},
): DynamoClaimStore {
  const itemKey = form.key;
  const read: ClaimStore["read"] = async (key) => {
    const { GetItemCommand } = await sdk();
    const command = new GetItemCommand({
      TableName: tableName,
      Key: marshalled(itemKey(key)),
      ConsistentRead: true,
    });
    const { Item } = await database.send(command);
    return Item === undefined ? undefined : form.read(Item);
  };
  return {
    read,
    take: async (key, claim, nowMs) => {
      const { PutItemCommand } = await sdk();
      const command = new PutItemCommand({
        TableName: tableName,
        Item: { ...marshalled(ownedKey(itemKey, key)), ...form.write(claim) },
        ConditionExpression: isFree(claim.generation),
        ExpressionAttributeNames: names,
        ExpressionAttributeValues: marshalled({
          ...(claim.generation === undefined ? {} : { ":generation": claim.generation }),
          ":completed": "COMPLETED",
          ":inProgress": "INPROGRESS",
          ":nowSeconds": Math.floor(nowMs / 1000),
          ":leasedUntil": nowMs - skewMs,
          ":leasedUntilSeconds": (nowMs - skewMs) / 1000,
        }),
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      });
      try {
        await database.send(command);
        return undefined;
      } catch (error) {
        // While a duplicate commits, the record cannot be written but can be read.
        if (isNamed(error, "TransactionConflictException")) return read(key);
        if (!isNamed(error, "ConditionalCheckFailedException")) throw error;
        const { Item } = error as { readonly Item?: Item }; // safe: the member is optional
        return Item === undefined ? read(key) : form.read(Item);
      }
    },
    complete: async (key, claim) => {
      const { PutItemCommand } = await sdk();
      const command = new PutItemCommand({
        TableName: tableName,
        Item: { ...marshalled(ownedKey(itemKey, key)), ...form.write(claim) },
        ...form.completable(claim.owner),
      });
      return holds(() => database.send(command));
    },
    adopt: async (key, claim, from) => {
      const { PutItemCommand } = await sdk();
      const isOwned = from !== "";
      const command = new PutItemCommand({
        TableName: tableName,
        Item: { ...marshalled(ownedKey(itemKey, key)), ...form.write(claim) },
        ConditionExpression: `${isOwned ? "#owner = :from" : "attribute_not_exists(#owner)"} AND #status = :inProgress`,
        ExpressionAttributeNames: ownedNames,
        ExpressionAttributeValues: marshalled({
          ":inProgress": "INPROGRESS",
          ...(isOwned ? { ":from": from } : {}),
        }),
      });
      return holds(() => database.send(command));
    },
    ...ownedChanges(database, tableName, itemKey),
    commit: commitOf(database, tableName, itemKey, committing),
    ...resultParts(database, tableName, itemKey),
  };
}

function ownedChanges(
  database: Database,
  tableName: string,
  itemKey: ClaimForm["key"],
): Pick<ClaimStore, "renew" | "release" | "vacate" | "extend"> {
  const update = async (
    key: ClaimKey,
    UpdateExpression: string,
    ConditionExpression: string,
    values: Parameters<typeof marshalled>[0],
  ) => {
    const { UpdateItemCommand } = await sdk();
    const command = new UpdateItemCommand({
      TableName: tableName,
      Key: marshalled(itemKey(key)),
      UpdateExpression,
      ConditionExpression,
      ExpressionAttributeNames: ownedNames,
      ExpressionAttributeValues: marshalled(values),
    });
    return holds(() => database.send(command));
  };
  return {
    renew: (key, owner, leaseUntilMs, expiresAt) =>
      update(
        key,
        "SET in_progress_expiration = :lease, expiration = :expiration",
        ownedInProgress,
        {
          ":lease": leaseUntilMs,
          ":expiration": expiresAt,
          ":owner": owner,
          ":inProgress": "INPROGRESS",
        },
      ),
    release: async (key, owner) => {
      const { DeleteItemCommand } = await sdk();
      const command = new DeleteItemCommand({
        TableName: tableName,
        Key: marshalled(itemKey(key)),
        ConditionExpression: ownedInProgress,
        ExpressionAttributeNames: ownedNames,
        ExpressionAttributeValues: marshalled({ ":owner": owner, ":inProgress": "INPROGRESS" }),
      });
      // If the condition fails, the claim is deleted or has another owner, and so is released.
      await holds(() => database.send(command));
    },
    vacate: async (key, owner, expiresAt) => {
      await update(
        key,
        // Older versions of keelson also treat this value as an expired lease.
        "SET in_progress_expiration = :over, expiration = :expiration REMOVE #owner",
        ownedInProgress,
        { ":over": 0, ":expiration": expiresAt, ":owner": owner, ":inProgress": "INPROGRESS" },
      );
    },
    extend: async (key, owner, expiresAt) => {
      await update(
        key,
        "SET expiration = :expiration",
        "#owner = :owner AND #status = :completed AND expiration < :expiration",
        { ":expiration": expiresAt, ":owner": owner, ":completed": "COMPLETED" },
      );
    },
  };
}

function commitOf(
  database: Database,
  tableName: string,
  itemKey: ClaimForm["key"],
  committing: (tenantId: string) => Database,
): ClaimStore["commit"] {
  return async ({ items, token, completed, held, tenantId }) => {
    const { TransactWriteCommand } = await sdk();
    const own = [
      ...(completed === undefined ? [] : [{ Put: completion(tableName, itemKey, completed) }]),
      ...(held === undefined
        ? []
        : [{ ConditionCheck: holding(tableName, itemKey(held.key), held.owner) }]),
    ];
    // Safe: invalid items were refused earlier, and DynamoDB refuses invalid actions.
    const TransactItems = [...items, ...own] as NonNullable<
      TransactWriteCommandInput["TransactItems"]
    >;
    try {
      const committer = tenantId === undefined ? database : committing(tenantId);
      await committer.send(new TransactWriteCommand({ TransactItems, ClientRequestToken: token }));
      return undefined;
    } catch (error) {
      if (!isNamed(error, "TransactionCanceledException")) throw error;
      const { CancellationReasons = [] } = error as {
        readonly CancellationReasons?: readonly { Code?: string; Message?: string }[];
      };
      return CancellationReasons.map(({ Code = "None", Message = "" }) => ({
        code: Code,
        message: Message,
      }));
    }
  };
}

/** Stores the parts of results that are too large for their claims. */
function resultParts(
  database: Database,
  tableName: string,
  itemKey: ClaimForm["key"],
): Pick<ClaimStore, "putParts" | "readParts"> {
  return {
    putParts: async (key, owner, parts, expiresAt) => {
      const { PutItemCommand } = await sdk();
      for (const [index, data] of parts.entries()) {
        const item = {
          ...ownedKey(itemKey, partKey(key, owner, index)),
          data,
          expiration: expiresAt,
        };
        await database.send(new PutItemCommand({ TableName: tableName, Item: marshalled(item) }));
      }
    },
    readParts: async (key, owner, count) => {
      const { GetItemCommand } = await sdk();
      const parts: Uint8Array[] = [];
      for (let start = 0; start < count; start += partsPerRead) {
        const indexes = Array.from(
          { length: Math.min(partsPerRead, count - start) },
          (_, offset) => start + offset,
        );
        const items = await Promise.all(
          indexes.map((index) => {
            const Key = marshalled(itemKey(partKey(key, owner, index)));
            return database.send(
              new GetItemCommand({ TableName: tableName, Key, ConsistentRead: true }),
            );
          }),
        );
        for (const { Item } of items) {
          if (Item?.["data"]?.B === undefined) return undefined;
          parts.push(Item["data"].B);
        }
      }
      return parts;
    },
  };
}

function sdk() {
  return import("../clients/dynamodb-sdk.ts");
}

function partKey({ partition, sort, tenantId }: ClaimKey, owner: string, index: number): ClaimKey {
  return { partition, sort: `${sort}#${owner}#${index}`, tenantId };
}

/** Runs a conditional write. Resolves to `false` if the condition failed. */
async function holds(write: () => Promise<unknown>): Promise<boolean> {
  try {
    await write();
    return true;
  } catch (error) {
    if (isNamed(error, "ConditionalCheckFailedException")) return false;
    throw error;
  }
}

export function isNamed(error: unknown, name: string): boolean {
  return error instanceof Error && error.name === name;
}
