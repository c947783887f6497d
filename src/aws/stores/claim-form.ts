import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import type { ClaimKey, ClaimRecord } from "../../parts/once/claim.ts";
import type { ClaimCommit } from "../../parts/once/claim-store.ts";

/** Item in DynamoDB's wire form. */
export type Item = Record<string, AttributeValue>;

/**
 * Returns the attributes of a claim under Powertools' names for records: `status`, `expiration` in
 * seconds, `in_progress_expiration` in milliseconds, `data`, `validation`.
 */
export function claimAttributes(claim: ClaimRecord): Record<string, string | number | Uint8Array> {
  const { status, owner, expiresAt, fingerprint, generation } = claim;
  const { data, parts } = claim.status === "COMPLETED" ? (claim.result ?? {}) : {};
  return {
    status,
    owner,
    expiration: expiresAt,
    ...(claim.status === "INPROGRESS" ? { in_progress_expiration: claim.leaseUntilMs } : {}),
    ...(fingerprint === undefined ? {} : { validation: fingerprint }),
    ...(generation === undefined ? {} : { generation }),
    ...(data === undefined ? {} : { data }),
    ...(parts === undefined ? {} : { parts }),
  };
}

export interface ClaimForm {
  key(key: ClaimKey): Readonly<Record<string, string>>;
  write(claim: ClaimRecord): Item;
  read(item: Item): ClaimRecord;
  /** Condition under which `owner` may complete its claim. */
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

/** Converts strings, numbers and bytes to DynamoDB's form. A claim has no other values. */
export function marshalled(
  attributes: Readonly<Record<string, string | number | Uint8Array>>,
): Item {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]): [string, AttributeValue] => {
      if (typeof value === "string") return [name, { S: value }];
      return [name, typeof value === "number" ? { N: String(value) } : { B: value }];
    }),
  );
}

/**
 * Reads a claim from its item. Missing or invalid attributes of another writer's item read as a
 * claim that expired long ago.
 */
export function claimOf(item: Item): ClaimRecord {
  const owner = item["owner"]?.S ?? "";
  const fingerprint = item["validation"]?.S;
  const generation = item["generation"]?.S;
  const common = {
    owner,
    expiresAt: Number(item["expiration"]?.N ?? 0),
    ...(fingerprint === undefined ? {} : { fingerprint }),
    ...(generation === undefined ? {} : { generation }),
  };
  if (item["status"]?.S !== "COMPLETED") {
    const leaseUntilMs = Number(item["in_progress_expiration"]?.N ?? common.expiresAt * 1000);
    return { status: "INPROGRESS", ...common, leaseUntilMs };
  }
  const data = item["data"]?.B;
  const parts = item["parts"]?.N;
  const result = {
    ...(data === undefined ? {} : { data }),
    ...(parts === undefined ? {} : { parts: Number(parts) }),
  };
  return {
    status: "COMPLETED",
    ...common,
    ...(Object.keys(result).length === 0 ? {} : { result }),
  };
}

export function holding(tableName: string, key: Readonly<Record<string, unknown>>, owner: string) {
  return { TableName: tableName, Key: key, ...heldBy(owner) };
}

export function heldBy(owner: string) {
  return {
    ConditionExpression: ownedInProgress,
    ExpressionAttributeNames: ownedNames,
    ExpressionAttributeValues: { ":owner": owner, ":inProgress": "INPROGRESS" },
  };
}

/** Condition under which a claim of a generation may be put. */
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
  tableName: string,
  itemKey: ClaimForm["key"],
  { key, claim }: NonNullable<ClaimCommit["completed"]>,
) {
  return {
    TableName: tableName,
    Item: { ...ownedKey(itemKey, key), ...claimAttributes(claim) },
    ...heldBy(claim.owner),
  };
}

export function ownedKey(
  itemKey: ClaimForm["key"],
  key: ClaimKey,
): Readonly<Record<string, string>> {
  return key.tenantId === undefined ? itemKey(key) : { ...itemKey(key), tenantId: key.tenantId };
}
