import { quoted } from "../../base/errors/quoted.ts";
import type { Database } from "../../base/types/database.ts";
import {
  type QuotaRow,
  type QuotaStore,
  quotaPartition,
  type StoredUsage,
  type UsageCondition,
  type UsageWrite,
} from "../../parts/limits/quota-change.ts";
import { encodeTenant } from "../../parts/wall/tenant-prefix.ts";
import { numberIn, tableOf } from "./table.ts";

/** Time for which a row outlives its period, in seconds. No clock is that late. */
const keptSeconds = 7 * 86_400;

/** Keeps each quota's usage in one row for each tenant and period, in the table of claims. */
export function dynamoQuotas(database: Database, TableName: string): QuotaStore {
  const table = tableOf(database, TableName);
  const item: QuotaStore["item"] = (row, write) => ({
    Update: { TableName, Key: keyOf(row), ...updateOf(row, write) },
  });
  return {
    read: async (row) => {
      const stored = (await table.get(keyOf(row)))?.["used"];
      if (stored === undefined) return undefined;
      const used = numberIn(stored);
      if (Number.isFinite(used)) return used;
      const { tenantId, quota } = row;
      throw new Error(
        `the usage of the quota ${quota} of ${quoted(tenantId)} is ${quoted(stored)}; set it with keelson limits correct`,
      );
    },
    item,
    list: async function* (tenantId, onPage) {
      const pages =
        tenantId === undefined
          ? table.scanAll(
              {
                FilterExpression: "begins_with(pk, :prefix)",
                ExpressionAttributeValues: { ":prefix": quotaPartition },
              },
              onPage,
            )
          : table.queryAll({
              KeyConditionExpression: "pk = :tenant",
              ExpressionAttributeValues: { ":tenant": partitionOf(tenantId) },
            });
      for await (const { Items = [] } of pages) yield* Items.map(usageOf);
    },
  };
}

function keyOf({ tenantId, quota, period }: QuotaRow) {
  return { pk: partitionOf(tenantId), sk: `${quota}#${period.id}` };
}

function partitionOf(tenantId: string): string {
  return quotaPartition + encodeTenant(tenantId);
}

function usageOf(item: Readonly<Record<string, unknown>>): StoredUsage {
  const [quota = "", period = ""] = String(item["sk"]).split("#");
  return { tenantId: String(item["tenantId"]), quota, period, used: Number(item["used"]) };
}

function updateOf({ tenantId, period: { endsAtMs } }: QuotaRow, write: UsageWrite) {
  const expiration = endsAtMs === undefined ? undefined : Math.ceil(endsAtMs / 1_000) + keptSeconds;
  const owned =
    expiration === undefined
      ? "tenantId = :tenant"
      : `tenantId = :tenant, expiration = :expiration`;
  const UpdateExpression =
    write.kind === "add" ? `SET ${owned} ADD #used :number` : `SET ${owned}, #used = :number`;
  const { condition, number } = write;
  const { expression, bound } = condition === undefined ? noCondition : conditionOf(condition);
  return {
    UpdateExpression,
    ...(expression === undefined ? {} : { ConditionExpression: expression }),
    ExpressionAttributeNames: { "#used": "used" },
    ExpressionAttributeValues: {
      ":tenant": tenantId,
      ":number": number,
      ...(expiration === undefined ? {} : { ":expiration": expiration }),
      ...(bound === undefined ? {} : { ":bound": bound }),
    },
  };
}

const noCondition = { expression: undefined, bound: undefined };
const isMissing = "attribute_not_exists(#used)";

/** A missing row counts as 0, so it fits every bound that 0 fits. */
function conditionOf(condition: UsageCondition) {
  if ("atLeast" in condition) return { expression: "#used >= :bound", bound: condition.atLeast };
  if ("atMost" in condition) {
    const { atMost } = condition;
    const expression = atMost < 0 ? "#used <= :bound" : `${isMissing} OR #used <= :bound`;
    return { expression, bound: atMost };
  }
  const { exactly } = condition;
  if (exactly === undefined) return { expression: isMissing, bound: undefined };
  return { expression: "#used = :bound", bound: exactly };
}
