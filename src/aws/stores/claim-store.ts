import type { PutItemCommandInput } from "@aws-sdk/client-dynamodb";
import type { TransactWriteCommandInput } from "@aws-sdk/lib-dynamodb";
import type { Database } from "../../base/types/database.ts";
import {
  type ClaimInProgress,
  type ClaimKey,
  type ClaimRecord,
  skewMs,
} from "../../parts/once/claim.ts";
import type { ClaimCommit, ClaimStore } from "../../parts/once/claim-store.ts";
import type { EarlyRows } from "../light/light-database.ts";
import { type ClaimForm, claimOf, type Item } from "./claim-item.ts";
import { assertStorable, held, isNamed, tableOf } from "./table.ts";

const partsPerRead = 25;

export interface DynamoClaimStore extends ClaimStore {
  /** Replaces the claim that `from` holds in progress. Resolves to `false` if it no longer does. */
  adopt(key: ClaimKey, claim: ClaimInProgress, from: string): Promise<boolean>;
}

/**
 * The conditions match `judge` in claim.ts. TTL deletes items days late, so every condition checks
 * the expiry.
 */
export function dynamoClaimStore(
  database: Database,
  tableName: string,
  {
    form = ownForm,
    committing = () => database,
    early,
  }: {
    /** Default: the form of keelson's own table. */
    readonly form?: ClaimForm | undefined;
    /** Returns the client that commits a tenant's run. Default: `database`. */
    readonly committing?: ((tenantId: string) => Database) | undefined;
    /** Puts items while the SDK is not loaded. */
    readonly early?: Pick<EarlyRows, "put"> | undefined;
  } = {},
): DynamoClaimStore {
  const itemKey = form.key;
  const get = async (key: ClaimKey) => {
    const { GetItemCommand } = await sdk();
    const Key = marshalled(itemKey(key));
    const command = new GetItemCommand({ TableName: tableName, Key, ConsistentRead: true });
    return (await database.send(command)).Item;
  };
  const put = async (key: ClaimKey, item: Item, condition: Partial<PutItemCommandInput> = {}) => {
    const Item = { ...marshalled(ownedKey(itemKey, key)), ...item };
    const input = { TableName: tableName, Item, ...condition };
    const isPut = await early?.put(input);
    if (isPut) return true;
    const { PutItemCommand } = await sdk();
    await database.send(new PutItemCommand(input));
    return true;
  };
  const read: ClaimStore["read"] = async (key) => {
    const item = await get(key);
    return item && form.read(item);
  };
  return {
    read,
    take: async (key, claim, nowMs) => {
      try {
        await put(key, form.write(claim), {
          ConditionExpression: isFree(claim.generation),
          ExpressionAttributeNames: { "#status": "status" },
          ExpressionAttributeValues: marshalled({
            ":generation": claim.generation,
            ":completed": "COMPLETED",
            ":inProgress": "INPROGRESS",
            ":nowSeconds": Math.floor(nowMs / 1000),
            ":leasedUntil": nowMs - skewMs,
            ":leasedUntilSeconds": (nowMs - skewMs) / 1000,
          }),
          ReturnValuesOnConditionCheckFailure: "ALL_OLD",
        });
        return undefined;
      } catch (error) {
        // While a duplicate commits, the record cannot be written but can be read.
        if (isNamed(error, "TransactionConflictException")) return read(key);
        if (!isNamed(error, "ConditionalCheckFailedException")) throw error;
        const { Item } = error as { readonly Item?: Item }; // safe: the member is optional
        return Item === undefined ? read(key) : form.read(Item);
      }
    },
    complete: async (key, claim) =>
      (await held(put(key, form.write(claim), form.completable(claim.owner)))) === true,
    adopt: async (key, claim, from) => {
      const isFreed = from === "";
      const isOwned = isFreed ? "attribute_not_exists(#owner)" : "#owner = :from";
      const values = { ":inProgress": "INPROGRESS", ":from": isFreed ? undefined : from };
      const condition = {
        ConditionExpression: `${isOwned} AND #status = :inProgress`,
        ExpressionAttributeNames: ownedNames,
        ExpressionAttributeValues: marshalled(values),
      };
      return (await held(put(key, form.write(claim), condition))) === true;
    },
    ...ownedChanges(database, tableName, itemKey),
    commit: commitOf(database, tableName, itemKey, committing),
    // Results that are too large for their claims are stored in parts.
    putParts: async (key, owner, parts, expiration) => {
      for (const [index, data] of parts.entries())
        await put(partKey(key, owner, index), marshalled({ data, expiration }));
    },
    readParts: async (key, owner, count) => {
      const parts: Uint8Array[] = [];
      for (let start = 0; start < count; start += partsPerRead) {
        const length = Math.min(partsPerRead, count - start);
        const items = await Promise.all(
          Array.from({ length }, (_, offset) => get(partKey(key, owner, start + offset))),
        );
        for (const item of items) {
          if (item?.["data"]?.B === undefined) return undefined;
          parts.push(item["data"].B);
        }
      }
      return parts;
    },
  };
}

const ownForm: ClaimForm = {
  key: ({ partition, sort }) => ({ pk: partition, sk: sort }),
  write: (claim) => marshalled(claimAttributes(claim)),
  read: claimOf,
  completable: (owner) => ({
    ConditionExpression: "#owner = :owner",
    ExpressionAttributeNames: { "#owner": "owner" },
    ExpressionAttributeValues: marshalled({ ":owner": owner }),
  }),
};

/**
 * Attributes under Powertools' names for records: `status`, `expiration` in seconds,
 * `in_progress_expiration` in milliseconds, `data`, `validation`.
 */
export function claimAttributes(claim: ClaimRecord) {
  const { status, owner, expiresAt: expiration, fingerprint: validation, generation } = claim;
  const { data, parts } = claim.status === "COMPLETED" ? (claim.result ?? {}) : {};
  const in_progress_expiration = claim.status === "INPROGRESS" ? claim.leaseUntilMs : undefined;
  const stated = { status, owner, expiration, in_progress_expiration };
  return { ...stated, validation, generation, data, parts };
}

/** Leaves out `undefined`. A claim has no other values than strings, numbers and bytes. */
export function marshalled(
  attributes: Readonly<Record<string, string | number | Uint8Array | undefined>>,
): Item {
  const item: Item = {};
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "string") item[name] = { S: value };
    else if (typeof value === "number") item[name] = { N: String(value) };
    else if (value !== undefined) item[name] = { B: value };
  }
  return item;
}

function ownedKey(itemKey: ClaimForm["key"], key: ClaimKey): Readonly<Record<string, string>> {
  return key.tenantId === undefined ? itemKey(key) : { ...itemKey(key), tenantId: key.tenantId };
}

function isFree(generation: string | undefined): string {
  const isOurs =
    generation === undefined ? "attribute_not_exists(generation)" : "generation = :generation";
  return [
    "attribute_not_exists(#status)",
    "(#status = :completed AND expiration <= :nowSeconds)",
    `(#status = :inProgress AND ${isOurs} AND (${leaseIsOver}))`,
  ].join(" OR ");
}

const leaseIsOver = [
  "in_progress_expiration < :leasedUntil",
  // Powertools writes such records if it has no Lambda context.
  "(attribute_not_exists(in_progress_expiration) AND expiration < :leasedUntilSeconds)",
].join(" OR ");

export const ownedNames = { "#owner": "owner", "#status": "status" };
const ownedInProgress = "#owner = :owner AND #status = :inProgress";

function ownedChanges(
  database: Database,
  tableName: string,
  itemKey: ClaimForm["key"],
): Pick<ClaimStore, "renew" | "release" | "vacate" | "extend"> {
  const table = tableOf(database, tableName);
  const inProgress = (owner: string, values: Parameters<typeof marshalled>[0] = {}) => ({
    ConditionExpression: ownedInProgress,
    ExpressionAttributeNames: ownedNames,
    ExpressionAttributeValues: marshalled({
      ":owner": owner,
      ":inProgress": "INPROGRESS",
      ...values,
    }),
  });
  return {
    renew: async (key, owner, leaseUntilMs, expiresAt) => {
      const renewed = await table.update(marshalled(itemKey(key)), {
        UpdateExpression: "SET in_progress_expiration = :lease, expiration = :expiration",
        ...inProgress(owner, { ":lease": leaseUntilMs, ":expiration": expiresAt }),
      });
      return renewed !== undefined;
    },
    release: async (key, owner) => {
      // If the condition fails, the claim is deleted or has another owner, so it is released anyway.
      await table.remove(marshalled(itemKey(key)), inProgress(owner));
    },
    vacate: async (key, owner, expiresAt) => {
      await table.update(marshalled(itemKey(key)), {
        // Older versions of keelson also treat this value as an expired lease.
        UpdateExpression:
          "SET in_progress_expiration = :over, expiration = :expiration REMOVE #owner",
        ...inProgress(owner, { ":over": 0, ":expiration": expiresAt }),
      });
    },
    extend: async (key, owner, expiresAt) => {
      await table.update(marshalled(itemKey(key)), {
        UpdateExpression: "SET expiration = :expiration",
        ConditionExpression:
          "#owner = :owner AND #status = :completed AND expiration < :expiration",
        ExpressionAttributeNames: ownedNames,
        ExpressionAttributeValues: marshalled({
          ":expiration": expiresAt,
          ":owner": owner,
          ":completed": "COMPLETED",
        }),
      });
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
    const TransactItems = [...items, ...own] as TransactWriteCommandInput["TransactItems"];
    const command = new TransactWriteCommand({ TransactItems, ClientRequestToken: token });
    const committer = tenantId === undefined ? database : committing(tenantId);
    try {
      await committer.send(command);
      return undefined;
    } catch (error) {
      await assertStorable(committer, command, error);
      if (!isNamed(error, "TransactionCanceledException")) throw error;
      const { CancellationReasons: reasons = [] } = error as {
        readonly CancellationReasons?: readonly { Code?: string; Message?: string }[];
      };
      return reasons.map(({ Code: code = "None", Message: message = "" }) => ({ code, message }));
    }
  };
}

function completion(
  TableName: string,
  itemKey: ClaimForm["key"],
  { key, claim }: NonNullable<ClaimCommit["completed"]>,
) {
  const Item = { ...ownedKey(itemKey, key), ...claimAttributes(claim) };
  return { TableName, Item, ...heldBy(claim.owner) };
}

export function holding(TableName: string, Key: Readonly<Record<string, unknown>>, owner: string) {
  return { TableName, Key, ...heldBy(owner) };
}

function heldBy(owner: string) {
  return {
    ConditionExpression: ownedInProgress,
    ExpressionAttributeNames: ownedNames,
    ExpressionAttributeValues: { ":owner": owner, ":inProgress": "INPROGRESS" },
  };
}

function sdk() {
  return import("../clients/dynamodb-sdk.ts");
}

function partKey({ partition, sort, tenantId }: ClaimKey, owner: string, index: number): ClaimKey {
  return { partition, sort: `${sort}#${owner}#${index}`, tenantId };
}
