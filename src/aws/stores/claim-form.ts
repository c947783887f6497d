import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import type { ClaimKey, ClaimRecord } from "../../parts/once/claim.ts";

/** An item as DynamoDB has it. */
export type Item = Record<string, AttributeValue>;

/**
 * The attributes of a claim, named as Powertools names those of its records: `status`, `expiration`
 * in seconds, `in_progress_expiration` in milliseconds, `data`, `validation`.
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

/** How claims are written in a table. */
export interface ClaimForm {
  /** The key of an item. */
  key(key: ClaimKey): Readonly<Record<string, string>>;
  /** The attributes of a claim beside its key. */
  write(claim: ClaimRecord): Item;
  /** The claim of an item, which somebody else may have written. */
  read(item: Item): ClaimRecord;
  /** The condition under which `owner` may complete its claim. */
  completable(owner: string): {
    readonly ConditionExpression: string;
    readonly ExpressionAttributeNames: Record<string, string>;
    readonly ExpressionAttributeValues: Item;
  };
}

/** The names in conditions on a claim's owner and status. */
export const ownedNames = { "#owner": "owner", "#status": "status" };

/** The form in the table of keelson's own. */
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

/** Texts, numbers and bytes as DynamoDB takes them: a claim has nothing else. */
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

/** Reads a claim from its item. Another owner's item without sound attributes is one that is long over. */
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

/** Checks that `owner` holds a claim in progress, for a transaction. */
export function holding(tableName: string, key: Readonly<Record<string, unknown>>, owner: string) {
  return { TableName: tableName, Key: key, ...heldBy(owner) };
}

/** The condition that `owner` holds a claim in progress. */
export function heldBy(owner: string) {
  return {
    ConditionExpression: "#owner = :owner AND #status = :inProgress",
    ExpressionAttributeNames: ownedNames,
    ExpressionAttributeValues: { ":owner": owner, ":inProgress": "INPROGRESS" },
  };
}
