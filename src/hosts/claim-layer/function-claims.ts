import type { JSONValue } from "@aws-lambda-powertools/commons/types";
import { IdempotencyRecord } from "@aws-lambda-powertools/idempotency/persistence";
import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { attemptsWithin } from "../../aws/clients/client-options.ts";
import { type ClaimForm, claimOf } from "../../aws/stores/claim-item.ts";
import {
  claimAttributes,
  dynamoClaimStore,
  marshalled,
  ownedNames,
} from "../../aws/stores/claim-store.ts";
import { systemClock } from "../../base/process/clock.ts";
import { lazy } from "../../base/process/lazy.ts";
import { eventFunctionName } from "../../base/process/platform.ts";
import type { Database } from "../../base/types/database.ts";
import { defined } from "../../base/types/defined.ts";
import { type ClaimKey, type ClaimRecord, expiry, skewMs } from "../../parts/once/claim.ts";
import type { ClaimStore } from "../../parts/once/claim-store.ts";
import { createClaims } from "../../parts/once/claims.ts";
import type { Claim } from "../../parts/once/held-claim.ts";
import { type Invocation, isUnanswered, mayTakeOver, settle } from "./claim-invocation.ts";
import type { ClaimLayerOptions } from "./claim-layer-options.ts";
import { resultOf, storableResult, unstorableError } from "./storable-result.ts";

/** Time left to refuse a duplicate after a wait, before Lambda ends the process, in milliseconds. */
const refusalMs = 500;

export type FunctionClaims = ReturnType<typeof createFunctionClaims>;

export function createFunctionClaims(options: ClaimLayerOptions, retentionMs: () => number) {
  const { sortKeyAttr, staticPkValue } = options;
  const { open } = lazy(() => openStore(options, retentionMs));

  const claimKey = (idempotencyKey: string): ClaimKey => {
    const partition = staticPkValue ?? `idempotency#${eventFunctionName(process.env) ?? ""}`;
    return { partition: sortKeyAttr === undefined ? "" : partition, sort: idempotencyKey };
  };

  /** Returns the record, if any, that refuses the invocation after `waitMs`. */
  const take = async (invocation: Invocation, waitMs: number): Promise<ClaimRecord | undefined> => {
    const { claims, store } = await open();
    const { fingerprint, deadlineMs, durable } = invocation;
    const key = claimKey(invocation.key);
    const owner = crypto.randomUUID();
    const leftMs = (deadlineMs ?? Number.POSITIVE_INFINITY) - refusalMs - systemClock.now();
    durable?.owners.add(owner);
    const taken = await claims.take(key, {
      owner,
      fingerprint,
      deadlineMs,
      waitMs: Math.max(0, Math.min(waitMs, leftMs)),
      stop: [],
      adopt: (found, claim) => {
        const attempt = () => store.adopt(key, claim, found.owner);
        return mayTakeOver(invocation, found) ? attempt().catch(attempt) : undefined;
      },
      ...(durable === undefined ? {} : { execution: durable.execution, heldMs: retentionMs() }),
    });
    // Safe: this call does not compare fingerprints, so the result is never `other`.
    if (taken.kind !== "taken") return (taken as Exclude<typeof taken, { kind: "other" }>).record;
    invocation.claim = taken.claim;
    return undefined;
  };
  /** Takes the claim of a replay that the engine ran, unless its work is already done. */
  const takeForReplay = async (invocation: Invocation): Promise<"done" | undefined> => {
    if (invocation.found?.status !== "INPROGRESS") return "done";
    return (await take(invocation, 0))?.status === "COMPLETED" ? "done" : undefined;
  };

  return {
    take,
    takeForReplay,
    complete: async (claim: Claim, result: unknown) =>
      complete((await open()).store, claim, result, retentionMs),
    /** Never throws, so that callers receive the function's own error. */
    release: async (invocation: Invocation): Promise<void> => {
      try {
        if (isUnanswered(invocation)) await takeForReplay(invocation);
        // An invocation without a claim was refused: the record belongs to its duplicate.
        await invocation.claim?.release();
      } catch (error) {
        console.warn(
          `The claim of ${invocation.key} could not be released; it ends by itself`,
          error,
        );
      } finally {
        settle(invocation);
      }
    },
    read: async (idempotencyKey: string): Promise<ClaimRecord | undefined> =>
      (await open()).store.read(claimKey(idempotencyKey)),
    /** @throws TypeError if the result of the claim could not be stored. */
    recordOf: async (idempotencyKey: string, found: ClaimRecord): Promise<IdempotencyRecord> => {
      const sortKey = sortKeyAttr === undefined ? {} : { sortKey: idempotencyKey };
      const common = { idempotencyKey, ...sortKey, payloadHash: found.fingerprint ?? "" };
      if (found.status === "INPROGRESS")
        return new IdempotencyRecord({
          ...common,
          // No earlier than the lease, unlike some records that Powertools writes.
          expiryTimestamp: Math.max(
            found.expiresAt,
            Math.ceil((found.leaseUntilMs + skewMs) / 1000),
          ),
          status: "INPROGRESS",
          inProgressExpiryTimestamp: found.leaseUntilMs,
        });
      const { store } = await open();
      // Powertools casts the stored result in the same way.
      const responseData = (await resultOf(store, claimKey(idempotencyKey), found)) as JSONValue;
      return new IdempotencyRecord({
        ...common,
        expiryTimestamp: found.expiresAt,
        status: "COMPLETED",
        responseData,
      });
    },
  };
}

/**
 * Stores a result, and returns it as later calls read it; `undefined` if another owner has taken over
 * the claim.
 *
 * @throws TypeError if the result could not be stored; the record then shows that the work is done.
 */
async function complete(
  store: ClaimStore,
  claim: Claim,
  result: unknown,
  retentionMs: () => number,
): Promise<{ readonly stored: unknown } | undefined> {
  const prepared = await storableResult(result);
  if (prepared.kind === "unstorable") {
    if (await claim.complete({ unkept: prepared.reason })) throw unstorableError(prepared.reason);
    return undefined;
  }
  const { key, owner } = claim;
  const completeAsText = async () => {
    const expiresAt = expiry(Date.now(), retentionMs());
    return claim.complete(await prepared.asText(store, { key, owner, expiresAt }));
  };
  const isOurs = await (prepared.inRecord === undefined
    ? completeAsText()
    : claim.complete(prepared.inRecord).catch((error: unknown) => {
        // DynamoDB rejects a value for its size, its depth or a number.
        if (error instanceof Error && error.name === "ValidationException") return completeAsText();
        throw error;
      }));
  return isOurs ? { stored: await prepared.restored() } : undefined;
}

async function openStore(
  { tableName, keyAttr = "id", sortKeyAttr, awsSdkV3Client, clientConfig = {} }: ClaimLayerOptions,
  retentionMs: () => number,
) {
  const { DynamoDBClient } = await import("../../aws/clients/dynamodb-sdk.ts");
  const own = { requestHandler: attemptsWithin(5_000), ...clientConfig };
  // Safe: only `commit`, which this store never calls, needs a document client. Commands go to the
  // given client itself, which may be mocked.
  const database = (awsSdkV3Client ?? new DynamoDBClient(own)) as unknown as Database;
  const itemKey = ({ partition, sort }: ClaimKey): Record<string, string> =>
    sortKeyAttr === undefined ? { [keyAttr]: sort } : { [keyAttr]: partition, [sortKeyAttr]: sort };
  const store = dynamoClaimStore(database, tableName, { form: sharedForm(itemKey) });
  return { store, claims: createClaims({ store, clock: systemClock, retentionMs }) };
}

/**
 * Form of claims in a table that Powertools' `DynamoDBPersistenceLayer` and older versions of
 * keelson read and write at the same time:
 *
 * | completed record | attributes | read by |
 * |---|---|---|
 * | Powertools' | `data`, a DynamoDB value | all |
 * | ours | `data`, a DynamoDB value; `completed_by` | all |
 * | ours, result is not a DynamoDB value | `owner`, and `data` as bytes or `parts` | keelson |
 * | ours, result not storable | `unkept`, the reason | this version; others do not find a result |
 *
 * If Powertools has overwritten the `data` of a record with an `owner`, the record still has
 * `in_progress_expiration`.
 */
function sharedForm(key: ClaimForm["key"]): ClaimForm {
  return {
    key,
    write: (claim) => {
      const { owner, ...others } = marshalled(claimAttributes(claim));
      const common = { ...others, ...marshalled(defined({ execution: claim.execution })) };
      const owned = marshalled({ owner: claim.owner });
      if (claim.status === "INPROGRESS") return { ...common, ...owned };
      const { data, parts, value, unkept } = { ...claim.result };
      return {
        ...common,
        ...marshalled({ completed_by: claim.owner, ...defined({ unkept }) }),
        ...(data === undefined && parts === undefined ? {} : owned),
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
    // If the response to the first attempt was lost, the record is completed, and the second
    // attempt finds its owner in `completed_by`.
    completable: (owner) => ({
      ConditionExpression: "(#owner = :owner AND #status = :inProgress) OR completed_by = :owner",
      ExpressionAttributeNames: ownedNames,
      ExpressionAttributeValues: marshalled({ ":owner": owner, ":inProgress": "INPROGRESS" }),
    }),
  };
}
