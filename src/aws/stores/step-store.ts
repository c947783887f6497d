import type { TransactWriteCommandInput } from "@aws-sdk/lib-dynamodb";
import type { Database } from "../../base/types/database.ts";
import type { ClaimKey, StoredResult } from "../../parts/once/claim.ts";
import type { ListedStep, StepFacts, StepRecord, StepStore } from "../../parts/once/step.ts";
import { holding } from "./claim-store.ts";
import { held, numberIn, tableOf, transact } from "./table.ts";

type Attributes = Readonly<Record<string, unknown>>;

/** Each step has a partition with one row in the table of claims. */
export function dynamoSteps(database: Database, tableName: string): StepStore {
  const table = tableOf(database, tableName);
  return {
    start: async (place, step, facts, ifUnknown, nowMs) => {
      const items = startItems(tableName, place, step, facts, ifUnknown, nowMs);
      const cancelled = await transact(database, items);
      if (cancelled === undefined) return "started";
      const [claim, own] = cancelled.codes;
      if (claim === failed) return "fenced";
      return own === failed ? "taken" : "conflict";
    },
    read: async (place) => {
      const item = await table.get(keyOf(place));
      return item && recordOf(item);
    },
    end: async (place, step, from) => {
      const { UpdateCommand } = await import("../clients/dynamodb-sdk.ts");
      const command = new UpdateCommand(endUpdate(tableName, place, step, from));
      return (await held(database.send(command))) !== undefined;
    },
    find: async (key) => {
      const item = await table.get({ pk: `${prefix}${key}`, sk: "step" });
      return item && listedOf(item);
    },
    list: async function* (onPage) {
      const steps = {
        FilterExpression: "begins_with(pk, :prefix) AND sk = :step",
        ExpressionAttributeValues: { ":prefix": prefix, ":step": "step" },
      };
      for await (const { Items = [] } of table.scanAll(steps, onPage)) yield* Items.map(listedOf);
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
        Item: {
          ...keyOf(place),
          tenantId: place.tenantId,
          ...factAttributes(facts),
          ...recordAttributes(step),
        },
        ConditionExpression: `(${[...free, ...isUnknownTaken].join(") OR (")})`,
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
  const attributes = Object.entries(recordAttributes(step));
  return {
    TableName: tableName,
    Key: keyOf(place),
    UpdateExpression: `SET ${attributes.map(([name]) => `#${name} = :${name}`).join(", ")}`,
    // The second alternative covers a retry whose first response was lost.
    ConditionExpression:
      "(#owner = :from AND #status = :started) OR (#owner = :owner AND #status = :status)",
    ExpressionAttributeNames: Object.fromEntries(attributes.map(([name]) => [`#${name}`, name])),
    ExpressionAttributeValues: {
      ...Object.fromEntries(attributes.map(([name, value]) => [`:${name}`, value])),
      ":from": from,
      ":started": "STARTED",
    },
  };
}

const prefix = "step:";
const names = { "#owner": "owner", "#status": "status" };
const failed = "ConditionalCheckFailed";

function keyOf({ partition, sort }: ClaimKey) {
  return { pk: partition, sk: sort };
}

function recordAttributes(record: StepRecord): Attributes {
  const { status, owner, expiresAt } = record;
  const result = record.status === "DONE" ? record.result : {};
  return { status, owner, expiration: expiresAt, ...result };
}

function factAttributes({ name, claim, ...facts }: StepFacts): Attributes {
  return { ...facts, stepName: name, claimPk: claim.partition, claimSk: claim.sort };
}

type StepRow = Omit<StepFacts, "name" | "claim"> &
  Readonly<Record<"pk" | "stepName" | "claimPk" | "claimSk", string>> & {
    readonly tenantId: string | undefined;
  };

/** The casts are safe, because only this store writes steps. */
function recordOf(item: Attributes): StepRecord {
  const common = { owner: item["owner"] as string, expiresAt: numberIn(item["expiration"]) };
  const status = item["status"] as StepRecord["status"];
  if (status !== "DONE") return { ...common, status };
  const { data, parts, unkept } = item as StoredResult;
  const result = { ...(data && { data }), ...(parts && { parts }), ...(unkept && { unkept }) };
  return { ...common, status, result };
}

function listedOf(item: Attributes): ListedStep {
  // Safe: only this store writes steps.
  const { pk, tenantId, stepName: name, claimPk, claimSk, ...facts } = item as unknown as StepRow;
  const { handler, requestId, startedAt, isSealed, keepMs } = facts;
  const claim = { partition: claimPk, sort: claimSk, tenantId };
  const listed = { name, handler, requestId, startedAt, isSealed, keepMs, claim };
  return { key: pk.slice(prefix.length), tenantId, ...listed, record: recordOf(item) };
}
