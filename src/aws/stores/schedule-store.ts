import type { BegunAttempt, ScheduleStore } from "../../app/schedules/schedule-step.ts";
import type { Database } from "../../base/types/database.ts";
import type { ClaimKey } from "../../parts/once/claim.ts";
import { marshalled } from "./claim-store.ts";
import { numbersIn, tableOf } from "./table.ts";

const isFree = "lastMs < :at AND (attribute_not_exists(begunMs) OR begunMs = :at)";
const settled = "lastMs = :at REMOVE begunMs, attempts, retryMs";

type Values = Readonly<Record<string, number | string>>;

/** Rows in the table of claims that never expire: two runs may be a year apart. */
export function dynamoSchedules(database: Database, tableName: string): ScheduleStore {
  const table = tableOf(database, tableName);
  const update = (
    { partition, sort }: ClaimKey,
    UpdateExpression: string,
    ConditionExpression: string,
    values: Values,
  ) =>
    table.update(marshalled({ pk: partition, sk: sort }), {
      UpdateExpression,
      ConditionExpression,
      ExpressionAttributeValues: marshalled(values),
      ReturnValues: "ALL_NEW",
    });
  /**
   * Makes a change that must not happen twice. The row names the change, so that it is recognized
   * when the SDK repeats it because its answer was lost. Resolves to `undefined` if the condition failed.
   */
  const changeOnce = async (
    key: ClaimKey,
    assignments: string,
    condition: string,
    values: Values,
  ): Promise<Readonly<Record<string, unknown>> | undefined> => {
    const by = crypto.randomUUID();
    const isFirst = `${condition} AND (attribute_not_exists(changedBy) OR changedBy <> :by)`;
    const expression = `SET changedBy = :by, ${assignments}`;
    const changed = await update(key, expression, isFirst, { ...values, ":by": by });
    if (changed !== undefined) {
      const { unmarshall } = await import("../clients/dynamodb-sdk.ts");
      return unmarshall(changed.Attributes as NonNullable<typeof changed.Attributes>); // safe: it asks for them
    }
    const found = await table.get({ pk: key.partition, sk: key.sort });
    return found?.["changedBy"] === by ? found : undefined;
  };

  return {
    idleUntil: new Map(),
    firstLooks: new Map(),
    read: async ({ partition, sort }) => {
      const item = await table.get({ pk: partition, sk: sort });
      if (item === undefined) return undefined;
      const stored = { lastMs: 0, attempts: 0, retryMs: 0, ...item };
      const { lastMs, attempts, retryMs } = numbersIn(stored, "lastMs", "attempts", "retryMs");
      if (item["begunMs"] === undefined) return { lastMs };
      const { begunMs: atMs } = numbersIn(stored, "begunMs");
      return { lastMs, begun: { atMs, attempts, retryMs } };
    },
    add: async (key, lastMs) => {
      await update(key, "SET lastMs = :last", "attribute_not_exists(lastMs)", { ":last": lastMs });
    },
    begin: async (key, atMs) => {
      const begun = await changeOnce(key, "begunMs = :at ADD attempts :one", isFree, {
        ":at": atMs,
        ":one": 1,
      });
      return begun && attemptOf(begun, atMs);
    },
    advance: async (key, { atMs, attempts, tenantId }) => {
      const values = { ":at": atMs, ":attempts": attempts, ":to": tenantId };
      const isOwn = "begunMs = :at AND attempts = :attempts";
      const sent = "SET sentMs = :at, sentBy = :attempts, sentTo = :to";
      return (await update(key, sent, isOwn, values)) !== undefined;
    },
    postpone: async (key, { atMs, attempts, retryMs }) => {
      const values = { ":at": atMs, ":attempts": attempts, ":retry": retryMs };
      await update(key, "SET retryMs = :retry", "begunMs = :at AND attempts = :attempts", values);
    },
    giveUp: async (key, { atMs, attempts }) => {
      const values = { ":at": atMs, ":attempts": attempts };
      const isOwn = "begunMs = :at AND attempts = :attempts";
      return (await changeOnce(key, settled, isOwn, values)) !== undefined;
    },
    pass: async (key, lastMs, atMs) => {
      const isAsRead = "lastMs = :last AND attribute_not_exists(begunMs)";
      const values = { ":last": lastMs, ":at": atMs };
      return (await changeOnce(key, "lastMs = :at", isAsRead, values)) !== undefined;
    },
    skip: async (key, atMs) => {
      await update(key, `SET ${settled}`, isFree, { ":at": atMs });
    },
    done: ({ partition, sort }, atMs) => ({
      Update: {
        TableName: tableName,
        Key: { pk: partition, sk: sort },
        UpdateExpression: `SET ${settled}`,
        ExpressionAttributeValues: { ":at": atMs },
      },
    }),
  };
}

function attemptOf(row: Readonly<Record<string, unknown>>, atMs: number): BegunAttempt {
  const { attempts } = numbersIn(row, "attempts");
  // The row keeps the page after its run, so it may belong to an earlier run.
  if (row["sentMs"] !== atMs) return { attempts };
  const { sentBy } = numbersIn(row, "sentBy");
  return { attempts, sent: { atMs, attempts: sentBy, tenantId: String(row["sentTo"]) } };
}
