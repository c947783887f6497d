import type { Database } from "../../base/types/database.ts";
import { dayOf, type KeptStream } from "../../parts/messages/kept-events.ts";
import { separator, tenantPrefix } from "../../parts/wall/tenant-prefix.ts";
import { type Item, marshalled } from "./claim-form.ts";
import { tableOf } from "./table.ts";

const dayMs = 86_400_000;
/** Time until a recorded day is checked again, because erasing a tenant erases its days. */
const notedMs = 600_000;
const mostNoted = 10_000;

/** Sort key of a permanent row with the type and the end of the first event's retention. */
export const firstSort = "first";

export function keptDays(database: Database, tableName: string) {
  const noted = new Map<string, number>();
  const { put } = tableOf(database, tableName);

  const read = async (Keys: Item[]): Promise<readonly Item[]> => {
    const { BatchGetItemCommand } = await import("../clients/dynamodb-sdk.ts");
    const RequestItems = { [tableName]: { Keys, ConsistentRead: true } };
    const { Responses = {} } = await database.send(new BatchGetItemCommand({ RequestItems }));
    return Responses[tableName] ?? []; // an unprocessed row looks missing, which the put's condition corrects
  };

  return {
    /**
     * Records the day of an event before the event's commit: within commits, all writes of a tenant
     * would conflict over this row. If the commit fails, the empty day costs a reader one call.
     */
    note: async (stream: KeptStream, nowMs: number, days: number): Promise<void> => {
      const day = dayOf(nowMs);
      const pk = daysPartition(stream);
      const { tenantId, type } = stream;
      const known = `${pk} ${day} ${days}`;
      if ((noted.get(known) ?? 0) > nowMs) return;
      const rows = await read([marshalled({ pk, sk: firstSort }), marshalled({ pk, sk: day })]);
      const found = (sk: string) => rows.find((row) => row["sk"]?.S === sk);
      const whose = { pk, ...(tenantId === undefined ? {} : { tenantId }) };
      // Written before the day, because a process that finds the day assumes that this row exists.
      if (found(firstSort) === undefined) {
        const keptUntil = expiry(nowMs, days);
        const until = keptUntil === undefined ? {} : { keptUntil };
        const isNew = { ConditionExpression: "attribute_not_exists(pk)" };
        await put({ ...whose, sk: firstSort, type, ...until }, isNew);
      }
      const expiration = expiry((Math.floor(nowMs / dayMs) + 1) * dayMs, days);
      if (!lasts(found(day), expiration)) {
        // The conditions keep an existing row that lasts as long.
        await (expiration === undefined
          ? put(
              { ...whose, sk: day },
              { ConditionExpression: "attribute_not_exists(pk) OR attribute_exists(expiration)" },
            )
          : put(
              { ...whose, sk: day, expiration },
              {
                ConditionExpression: "attribute_not_exists(pk) OR expiration < :expiration",
                ExpressionAttributeValues: marshalled({ ":expiration": expiration }),
              },
            ));
      }
      if (noted.size >= mostNoted) noted.clear();
      noted.set(known, nowMs + notedMs);
    },
  };
}

function lasts(row: Item | undefined, expiration: number | undefined): boolean {
  if (row === undefined) return false;
  const has = row["expiration"]?.N;
  return has === undefined || (expiration !== undefined && Number(has) >= expiration);
}

export function dayPartition({ tenantId, type }: KeptStream, day: string): string {
  return `${prefixOf(tenantId)}event/${type}/${day}`;
}

export function daysPartition({ tenantId, type }: KeptStream): string {
  return `${prefixOf(tenantId)}days/${type}`;
}

/** Prefix of a tenant's rows; for no tenant, the separator, which no encoded tenant contains. */
export function prefixOf(tenantId: string | undefined): string {
  return tenantId === undefined ? separator : tenantPrefix(tenantId);
}

/** Expiry in epoch seconds; `undefined` for data kept forever. */
export function expiry(fromMs: number, days: number): number | undefined {
  return days === Infinity ? undefined : Math.ceil(fromMs / 1_000) + days * 86_400;
}
