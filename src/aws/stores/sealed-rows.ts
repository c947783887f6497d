import { ValidationError } from "../../base/errors/errors.ts";
import { isSealed } from "../../base/secrets/sealed.ts";
import type { Database } from "../../base/types/database.ts";
import type { ConfigStore } from "../../parts/config/operate/operator-session.ts";
import type { SealedRow } from "../../parts/config/read/row-cipher.ts";
import { isNamed, tableOf } from "./table.ts";

/** Items per scan, and so the most that an interrupted rotation repeats. */
const pageSize = 100;

export function dynamoSealedRows(
  database: Database,
  tableName: string,
): Pick<ConfigStore, "sealedRows" | "reseal"> {
  return {
    sealedRows: async (from) => {
      const page = await tableOf(database, tableName).scan({
        Limit: pageSize,
        FilterExpression: "begins_with(pk, :rows) AND attribute_exists(#value.#sealed)",
        ExpressionAttributeNames: { "#value": "value", "#sealed": "sealed" },
        ExpressionAttributeValues: { ":rows": "config#" },
        ExclusiveStartKey: from === undefined ? undefined : startKey(from),
      });
      const { Items = [], ScannedCount = 0, LastEvaluatedKey: last } = page;
      const next = last && { next: cursorOf(last) };
      return { rows: Items.flatMap(sealedRow), scanned: ScannedCount, ...next };
    },
    reseal: async ({ address, version, value: { key, data } }, value) => {
      const { UpdateCommand } = await import("../clients/dynamodb-sdk.ts");
      // No two encrypted values have the same bytes, so `data` identifies the value that was read.
      // A row without a version must still lack one, because its value does not decrypt under a
      // version that was added by hand.
      const isSameVersion =
        version === undefined ? "NOT attribute_type(version, :number)" : "version = :version";
      const seen = `#value.#key = :key AND #value.#data = :data AND ${isSameVersion}`;
      try {
        await database.send(
          new UpdateCommand({
            TableName: tableName,
            Key: { pk: address.partition, sk: address.key },
            UpdateExpression: "SET #value = :value",
            ConditionExpression: seen,
            ExpressionAttributeNames: { "#value": "value", "#key": "key", "#data": "data" },
            ExpressionAttributeValues: {
              ":value": value,
              ":key": key,
              ":data": data,
              ...(version === undefined ? { ":number": "N" } : { ":version": version }),
            },
          }),
        );
        return true;
      } catch (error) {
        if (isNamed(error, "ConditionalCheckFailedException", "TransactionConflictException"))
          return false;
        throw error;
      }
    },
  };
}

function sealedRow({ pk, sk, version, value }: Record<string, unknown>): SealedRow[] {
  if (!isSealed(value)) return [];
  const address = { partition: String(pk), key: String(sk) };
  return [{ address, version: typeof version === "number" ? version : undefined, value }];
}

function cursorOf({ pk, sk }: Record<string, unknown>): string {
  return Buffer.from(JSON.stringify([pk, sk])).toString("base64url");
}

function startKey(cursor: string): Record<string, unknown> {
  try {
    const [pk, sk] = JSON.parse(Buffer.from(cursor, "base64url").toString()) as unknown[];
    if (typeof pk === "string" && typeof sk === "string") return { pk, sk };
  } catch {
    // The error below covers this case as well.
  }
  throw new ValidationError([{ field: "from", error: "is not the `next` of an earlier progress" }]);
}
