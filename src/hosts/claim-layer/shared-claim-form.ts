import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import {
  type ClaimForm,
  claimAttributes,
  claimOf,
  type Item,
  marshalled,
  ownedNames,
} from "../../aws/stores/claim-form.ts";
import type { ClaimRecord } from "../../parts/once/claim.ts";

/**
 * Form of claims in a table that Powertools' `DynamoDBPersistenceLayer` and older versions of
 * keelson read and write at the same time:
 *
 * | completed record | attributes | read by |
 * |---|---|---|
 * | Powertools' | `data`, a DynamoDB value | all |
 * | ours | `data`, a DynamoDB value; `completed_by` | all |
 * | ours, result is no DynamoDB value | `owner`, and `data` as bytes or `parts` | keelson |
 * | ours, result not storable | `unkept`, the reason | this version; others find no result |
 *
 * If Powertools has overwritten the `data` of a record with an `owner`, the record still has
 * `in_progress_expiration`.
 */
export function sharedForm(key: ClaimForm["key"]): ClaimForm {
  return {
    key,
    write: (claim) => {
      const { owner, ...others } = marshalled(claimAttributes(claim));
      const execution: Item =
        claim.execution === undefined ? {} : { execution: { S: claim.execution } };
      const common = { ...others, ...execution };
      if (claim.status === "INPROGRESS")
        return { ...common, ...marshalled({ owner: claim.owner }) };
      const { data, parts, value, unkept } = { ...claim.result };
      return {
        ...common,
        ...marshalled({ completed_by: claim.owner, ...(unkept === undefined ? {} : { unkept }) }),
        ...(data === undefined && parts === undefined ? {} : marshalled({ owner: claim.owner })),
        // Safe: only `storableResult` creates this value.
        ...(value === undefined ? {} : { data: value as AttributeValue }),
      };
    },
    read: (item) => {
      const claim: ClaimRecord = { ...claimOf(item), execution: item["execution"]?.S };
      if (claim.status === "INPROGRESS") return claim;
      const unkept = item["unkept"]?.S;
      if (unkept !== undefined) return { ...claim, result: { unkept } };
      if (claim.owner !== "" && item["in_progress_expiration"] === undefined) return claim;
      return { ...claim, owner: "", result: { value: item["data"] } };
    },
    // If the response to the first attempt was lost, the record is already completed, and the
    // second attempt finds its owner in `completed_by`.
    completable: (owner) => ({
      ConditionExpression: "(#owner = :owner AND #status = :inProgress) OR completed_by = :owner",
      ExpressionAttributeNames: ownedNames,
      ExpressionAttributeValues: marshalled({ ":owner": owner, ":inProgress": "INPROGRESS" }),
    }),
  };
}
