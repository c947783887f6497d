import { hash } from "node:crypto";
import type { Database } from "../../base/types/database.ts";
import {
  type ListedRate,
  type RateRow,
  type RateStore,
  ratePartition,
} from "../../parts/limits/rate-store.ts";
import { windowMs } from "../../parts/limits/rate-window.ts";
import { marshalled } from "./claim-store.ts";
import { numberIn, tableOf } from "./table.ts";

/** Kept after the window, for processes whose clocks are late, in milliseconds. */
const keptMs = 3_600_000;

/** Rows in the table of claims: a partition has a row for each window. */
export function dynamoRates(database: Database, tableName: string): RateStore {
  const table = tableOf(database, tableName);
  return {
    take: async (row, count, number) => {
      const facts = Object.entries(attributesOf(row, number)).filter(([, value]) => value);
      const names = facts.map(([name]) => name);
      const values = Object.fromEntries(facts.map(([name, value]) => [`:${name}`, value]));
      const updated = await table.update(marshalled(keyOf(row)), {
        UpdateExpression: `SET ${names.map((name) => `#${name} = :${name}`).join(", ")} ADD taken :count`,
        ConditionExpression: "attribute_not_exists(taken) OR taken < :number",
        ExpressionAttributeNames: Object.fromEntries(names.map((name) => [`#${name}`, name])),
        ExpressionAttributeValues: marshalled({ ...values, ":count": count }),
        ReturnValues: "UPDATED_NEW",
      });
      return updated && Number(updated.Attributes?.["taken"]?.N) - count;
    },
    read: async (row) => {
      const taken = numberIn((await table.get(keyOf(row)))?.["taken"] ?? 0);
      if (Number.isFinite(taken)) return taken;
      throw new Error(
        `the row of the rate limit ${row.limit.id} is malformed: its count is not a number`,
      );
    },
    list: async function* (tenantId, onPage) {
      const rates = {
        FilterExpression: `begins_with(pk, :prefix)${tenantId === undefined ? "" : " AND tenantId = :tenant"}`,
        ExpressionAttributeValues: {
          ":prefix": ratePartition,
          ...(tenantId !== undefined && { ":tenant": tenantId }),
        },
      };
      for await (const { Items = [] } of table.scanAll(rates, onPage)) yield* Items.map(listedOf);
    },
    remove: async ({ rowKey }) => {
      await table.remove(marshalled(rowKey));
    },
  };
}

function attributesOf({ limit, text, tenantId, startMs }: RateRow, number: number) {
  const { id, window, key } = limit;
  const expiration = Math.ceil((startMs + windowMs[window] + keptMs) / 1_000);
  return { limit: id, window, number, partition: text, expiration, configKey: key, tenantId };
}

function keyOf({ limit: { id, window }, text, startMs }: RateRow) {
  const parts = [id, window, text].map((part) => `${Buffer.byteLength(part)}:${part}`).join("");
  return {
    pk: `${ratePartition}${hash("sha256", parts, "base64url")}`,
    sk: new Date(startMs).toISOString(),
  };
}

type RateAttributes = Readonly<Record<"pk" | "sk" | "limit" | "partition", string>> &
  Readonly<Partial<Record<"configKey" | "tenantId", string>>> &
  Readonly<Record<"taken" | "number", number>> &
  Pick<RateRow["limit"], "window">;

function listedOf(item: Readonly<Record<string, unknown>>): ListedRate {
  // Safe cast: only this store writes rows with the prefix.
  const { pk, sk, limit, window, number, partition, configKey, tenantId, taken } =
    item as RateAttributes;
  return {
    limit: { id: limit, window, key: configKey },
    text: partition,
    tenantId,
    startMs: Date.parse(sk),
    taken: numberIn(taken),
    number: numberIn(number),
    rowKey: { pk, sk },
  };
}
