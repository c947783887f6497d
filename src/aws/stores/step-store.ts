import type { TransactWriteCommandInput } from "@aws-sdk/lib-dynamodb";
import type { Database } from "../../base/types/database.ts";
import type { ClaimKey, StoredResult } from "../../parts/once/claim.ts";
import type { StepRecord } from "../../parts/once/step.ts";
import type { ListedStep, StepFacts, StepStore } from "../../parts/once/step-store.ts";
import { holding } from "./claim-form.ts";
import { isNamed } from "./claim-store.ts";

type Attributes = Readonly<Record<string, unknown>>;

/** Stores steps in the table of claims, one row in a partition each. */
export function dynamoSteps(database: Database, tableName: string): StepStore {
  const read = async (Key: Attributes) => {
    const { GetCommand } = await import("../clients/dynamodb-sdk.ts");
    return (
      await database.send(new GetCommand({ TableName: tableName, Key, ConsistentRead: true }))
    ).Item;
  };
  return {
    start: async (place, step, facts, ifUnknown, nowMs) => {
      const { TransactWriteCommand } = await import("../clients/dynamodb-sdk.ts");
      const TransactItems = startItems(tableName, place, step, facts, ifUnknown, nowMs);
      try {
        await database.send(new TransactWriteCommand({ TransactItems }));
        return "started";
      } catch (error) {
        if (!isNamed(error, "TransactionCanceledException")) throw error;
        const { CancellationReasons: reasons = [] } = error as {
          readonly CancellationReasons?: readonly { Code?: string }[];
        }; // safe: the member is optional
        const [claim, own] = reasons.map(({ Code }) => Code);
        if (claim === failed) return "fenced";
        return own === failed ? "taken" : "conflict";
      }
    },
    read: async (place) => {
      const item = await read(keyOf(place));
      return item === undefined ? undefined : recordOf(item);
    },
    end: async (place, step, from) => {
      const { UpdateCommand } = await import("../clients/dynamodb-sdk.ts");
      const command = new UpdateCommand(endUpdate(tableName, place, step, from));
      try {
        await database.send(command);
        return true;
      } catch (error) {
        if (isNamed(error, "ConditionalCheckFailedException")) return false;
        throw error;
      }
    },
    find: async (key) => {
      const item = await read({ pk: `${prefix}${key}`, sk: "step" });
      return item === undefined ? undefined : listedOf(item);
    },
    list: async function* () {
      const { ScanCommand } = await import("../clients/dynamodb-sdk.ts");
      let from: Attributes | undefined;
      do {
        const { Items = [], LastEvaluatedKey } = await database.send(
          new ScanCommand({
            TableName: tableName,
            FilterExpression: "begins_with(pk, :prefix) AND sk = :step",
            ExpressionAttributeValues: { ":prefix": prefix, ":step": "step" },
            ExclusiveStartKey: from,
            ConsistentRead: true,
          }),
        );
        yield* Items.map(listedOf);
        from = LastEvaluatedKey;
      } while (from !== undefined);
    },
  };
}

function startItems(
  tableName: string,
  ...[place, step, facts, ifUnknown, nowMs]: Parameters<StepStore["start"]>
) {
  const isUnknownTaken = ifUnknown === "retry" ? ["#status = :started"] : [];
  const free = [
    "attribute_not_exists(pk)",
    "expiration <= :now",
    "#status = :undone",
    "#owner = :owner AND #status = :started",
  ];
  return [
    { ConditionCheck: holding(tableName, keyOf(facts.claim), step.owner) },
    {
      Put: {
        TableName: tableName,
        Item: { ...itemKey(place), ...factAttributes(facts), ...recordAttributes(step) },
        ConditionExpression: [...free, ...isUnknownTaken]
          .map((condition) => `(${condition})`)
          .join(" OR "),
        ExpressionAttributeNames: names,
        ExpressionAttributeValues: {
          ":owner": step.owner,
          ":started": "STARTED",
          ":undone": "NOT_DONE",
          ":now": Math.floor(nowMs / 1000),
        },
      },
    },
  ] satisfies TransactWriteCommandInput["TransactItems"];
}

function endUpdate(tableName: string, ...[place, step, from]: Parameters<StepStore["end"]>) {
  const { status, owner, expiration, ...result } = recordAttributes(step);
  const parts = Object.keys(result);
  return {
    TableName: tableName,
    Key: keyOf(place),
    UpdateExpression: [
      "SET #status = :status",
      "#owner = :next",
      "expiration = :expiration",
      ...parts.map((name) => `#${name} = :${name}`),
    ].join(", "),
    // The second alternative covers a retry whose first response was lost.
    ConditionExpression:
      "(#owner = :from AND #status = :started) OR (#owner = :next AND #status = :status)",
    ExpressionAttributeNames: {
      ...names,
      ...Object.fromEntries(parts.map((name) => [`#${name}`, name])),
    },
    ExpressionAttributeValues: {
      ":status": status,
      ":next": owner,
      ":expiration": expiration,
      ":from": from,
      ":started": "STARTED",
      ...Object.fromEntries(parts.map((name) => [`:${name}`, result[name]])),
    },
  };
}

const prefix = "step:";
const names = { "#owner": "owner", "#status": "status" };
const failed = "ConditionalCheckFailed";

function keyOf({ partition, sort }: ClaimKey): Attributes {
  return { pk: partition, sk: sort };
}

function itemKey(place: ClaimKey): Attributes {
  return { ...keyOf(place), tenantId: place.tenantId };
}

function recordAttributes(record: StepRecord): Attributes {
  const { status, owner, expiresAt } = record;
  const result = record.status === "DONE" ? record.result : {};
  return { status, owner, expiration: expiresAt, ...result };
}

function factAttributes({ name, claim, ...facts }: StepFacts): Attributes {
  return { ...facts, stepName: name, claimPk: claim.partition, claimSk: claim.sort };
}

interface StepRow extends Omit<StepFacts, "name" | "claim"> {
  readonly pk: string;
  readonly tenantId: string | undefined;
  readonly stepName: string;
  readonly claimPk: string;
  readonly claimSk: string;
}

/** The casts here and below are safe: only this store writes steps. */
function recordOf(item: Attributes): StepRecord {
  const common = { owner: item["owner"] as string, expiresAt: item["expiration"] as number };
  const status = item["status"] as StepRecord["status"];
  if (status !== "DONE") return { ...common, status };
  const { data, parts, unkept } = item as StoredResult;
  const result = { ...(data && { data }), ...(parts && { parts }), ...(unkept && { unkept }) };
  return { ...common, status, result };
}

function listedOf(item: Attributes): ListedStep {
  // Safe for the same reason.
  const { pk, tenantId, stepName: name, claimPk, claimSk, ...facts } = item as unknown as StepRow;
  const { handler, requestId, startedAt, isSealed, keepMs } = facts;
  const claim = { partition: claimPk, sort: claimSk, tenantId };
  const listed = { name, handler, requestId, startedAt, isSealed, keepMs, claim };
  return { key: pk.slice(prefix.length), tenantId, ...listed, record: recordOf(item) };
}
