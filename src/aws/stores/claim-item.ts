import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { defined } from "../../base/types/defined.ts";
import type { ClaimKey, ClaimRecord } from "../../parts/once/claim.ts";

export type Item = Record<string, AttributeValue>;

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

/** Missing or invalid attributes of another writer's item read as a claim that expired long ago. */
export function claimOf(item: Item): ClaimRecord {
  const common = {
    owner: item["owner"]?.S ?? "",
    expiresAt: Number(item["expiration"]?.N ?? 0),
    ...defined({
      fingerprint: item["validation"]?.S,
      generation: item["generation"]?.S,
      tenantId: item["tenantId"]?.S,
    }),
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
