import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { defined } from "../../base/types/defined.ts";
import type { ClaimKey, ClaimRecord } from "../../parts/once/claim.ts";
import type { ClaimCommit } from "../../parts/once/claim-store.ts";

export type Item = Record<string, AttributeValue>;

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

export interface ClaimForm {
  key(key: ClaimKey): Readonly<Record<string, string>>;
  write(claim: ClaimRecord): Item;
  read(item: Item): ClaimRecord;
  completable(owner: string): {
    readonly ConditionExpression: string;
    readonly ExpressionAttributeNames: Record<string, string>;
    readonly ExpressionAttributeValues: Item;
  };
}

export const ownedNames = { "#owner": "owner", "#status": "status" };
export const ownedInProgress = "#owner = :owner AND #status = :inProgress";

export const ownForm: ClaimForm = {
  key: ({ partition, sort }) => ({ pk: partition, sk: sort }),
  write: (claim) => marshalled(claimAttributes(claim)),
  read: claimOf,
  completable: (owner) => ({
    ConditionExpression: "#owner = :owner",
    ExpressionAttributeNames: { "#owner": "owner" },
    ExpressionAttributeValues: marshalled({ ":owner": owner }),
  }),
};

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

/** Missing or invalid attributes of another writer's item read as a claim that expired long ago. */
export function claimOf(item: Item): ClaimRecord {
  const common = {
    owner: item["owner"]?.S ?? "",
    expiresAt: Number(item["expiration"]?.N ?? 0),
    ...defined({ fingerprint: item["validation"]?.S, generation: item["generation"]?.S }),
  };
  if (item["status"]?.S !== "COMPLETED") {
    const leaseUntilMs = Number(item["in_progress_expiration"]?.N ?? common.expiresAt * 1000);
    return { status: "INPROGRESS", ...common, leaseUntilMs };
  }
  const parts = item["parts"]?.N;
  const result = defined({
    data: item["data"]?.B,
    parts: parts === undefined ? undefined : Number(parts),
  });
  const isEmpty = Object.keys(result).length === 0;
  return { status: "COMPLETED", ...common, ...(isEmpty ? {} : { result }) };
}

export function holding(TableName: string, Key: Readonly<Record<string, unknown>>, owner: string) {
  return { TableName, Key, ...heldBy(owner) };
}

export function heldBy(owner: string) {
  return {
    ConditionExpression: ownedInProgress,
    ExpressionAttributeNames: ownedNames,
    ExpressionAttributeValues: { ":owner": owner, ":inProgress": "INPROGRESS" },
  };
}

export function isFree(generation: string | undefined): string {
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

export function completion(
  TableName: string,
  itemKey: ClaimForm["key"],
  { key, claim }: NonNullable<ClaimCommit["completed"]>,
) {
  const Item = { ...ownedKey(itemKey, key), ...claimAttributes(claim) };
  return { TableName, Item, ...heldBy(claim.owner) };
}

export function ownedKey(
  itemKey: ClaimForm["key"],
  key: ClaimKey,
): Readonly<Record<string, string>> {
  return key.tenantId === undefined ? itemKey(key) : { ...itemKey(key), tenantId: key.tenantId };
}
