import type { Clock } from "../../base/process/clock.ts";
import { Recent } from "../../base/process/recent.ts";
import { serviceSizes, tooLarge } from "../../base/sizes/service-sizes.ts";
import type { Database } from "../../base/types/database.ts";
import { envelopeText } from "../../parts/messages/envelope.ts";
import {
  dayOf,
  type KeptEventReader,
  type KeptEventStore,
  type KeptStream,
  timeOf,
} from "../../parts/messages/kept-events.ts";
import { timeText } from "../../parts/messages/outbox-store.ts";
import { separator, tenantPrefix } from "../../parts/wall/tenant-prefix.ts";
import type { Item } from "./claim-item.ts";
import { marshalled } from "./claim-store.ts";
import { tableOf } from "./table.ts";

/** Stores events by tenant, type and day, sorted by time and ID. Extra rows list the days. */
export function dynamoKeptEvents(
  database: Database,
  tableName: string,
  clock: Clock,
): KeptEventStore {
  const days = keptDays(database, tableName);
  return {
    ...createReader(database, tableName),
    through: (other) => createReader(other, tableName),
    keep: async (event, forDays, trace) => {
      const nowMs = clock.now();
      const { type, eventId, tenantId } = event;
      // No proof, because proofs protect events on the bus and the row outlives the key ring's keys.
      const text = envelopeText(event, { trace });
      const [bytes, size] = [Buffer.byteLength(text), serviceSizes.dynamodbText];
      if (bytes > size.maxBytes)
        throw tooLarge(`ctx.publish: the kept event ${type}`, bytes, size, publishPlace);
      await days.note(event, nowMs, forDays);
      const key = { pk: dayPartition(event, dayOf(nowMs)), sk: `${timeText(nowMs)}#${eventId}` };
      const expiration = expiry(nowMs, forDays);
      const Item = { ...key, type, tenantId, expiration, event: text };
      return { Put: { TableName: tableName, Item } };
    },
  };
}

const publishPlace = "publish where the data is, not the data";

function createReader(database: Database, tableName: string): KeptEventReader {
  const table = tableOf(database, tableName);
  const query = async (pk: string, from: string, until: string, limit?: number) => {
    // DynamoDB refuses a range that ends before it starts.
    if (from > until) return { items: [], last: undefined };
    const { Items, LastEvaluatedKey } = await table.query({
      KeyConditionExpression: "pk = :pk AND sk BETWEEN :from AND :until",
      ExpressionAttributeValues: { ":pk": pk, ":from": from, ":until": until },
      Limit: limit,
    });
    // Safe: a Query always returns items, and a sort key is a string.
    return {
      items: Items as NonNullable<typeof Items>,
      last: LastEvaluatedKey?.["sk"] as string | undefined,
    };
  };
  return {
    days: async (stream, from, until) => {
      const { items, last } = await query(daysPartition(stream), from, until);
      return { items: items.map(({ sk }) => String(sk)), last };
    },
    rows: async (stream, day, from, until, limit) => {
      const { items, last } = await query(dayPartition(stream, day), from, until, limit);
      const rows = items.map(({ sk, event, expiration }) => ({
        sort: String(sk),
        atMs: timeOf(String(sk)),
        text: String(event),
        expiresAt: expiration === undefined ? undefined : Number(expiration),
      }));
      return { items: rows, last };
    },
  };
}

const dayMs = 86_400_000;
/** A recorded day is checked again after this time, because erasing a tenant erases its days. */
const notedMs = 600_000;
const mostNoted = 10_000;

/** Sort key of the permanent row with the type and the end of the first event's retention. */
export const firstSort = "first";

export function keptDays(database: Database, tableName: string) {
  const noted = new Recent<true>(mostNoted, notedMs);
  const { put } = tableOf(database, tableName);

  const read = async (Keys: Item[]): Promise<readonly Item[]> => {
    const { BatchGetItemCommand } = await import("../clients/dynamodb-sdk.ts");
    const RequestItems = { [tableName]: { Keys, ConsistentRead: true } };
    const { Responses = {} } = await database.send(new BatchGetItemCommand({ RequestItems }));
    return Responses[tableName] ?? []; // an unprocessed row looks missing, which the put's condition corrects
  };

  return {
    /**
     * Runs before the event's commit: within commits, all writes of a tenant would conflict over
     * this row. If the commit fails, the empty day costs a reader one call.
     */
    note: async (stream: KeptStream, nowMs: number, days: number): Promise<void> => {
      const day = dayOf(nowMs);
      const pk = daysPartition(stream);
      const { tenantId, type } = stream;
      const known = `${pk} ${day} ${days}`;
      if (noted.get(known, nowMs)) return;
      const rows = await read([marshalled({ pk, sk: firstSort }), marshalled({ pk, sk: day })]);
      const found = (sk: string) => rows.find((row) => row["sk"]?.S === sk);
      // Written before the day, because a process that finds the day assumes that this row exists.
      if (found(firstSort) === undefined) {
        const row = { pk, sk: firstSort, tenantId, type, keptUntil: expiry(nowMs, days) };
        await put(marshalled(row), { ConditionExpression: "attribute_not_exists(pk)" });
      }
      const expiration = expiry((Math.floor(nowMs / dayMs) + 1) * dayMs, days);
      if (!lasts(found(day), expiration)) {
        const isShorter =
          expiration === undefined ? "attribute_exists(expiration)" : "expiration < :expiration";
        const values = { ExpressionAttributeValues: marshalled({ ":expiration": expiration }) };
        // Keeps an existing row that lasts as long.
        await put(marshalled({ pk, sk: day, tenantId, expiration }), {
          ConditionExpression: `attribute_not_exists(pk) OR ${isShorter}`,
          ...(expiration !== undefined && values), // DynamoDB refuses an empty list of values
        });
      }
      noted.set(known, true, nowMs);
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

/** For no tenant, the separator, which no encoded tenant contains. */
export function prefixOf(tenantId: string | undefined): string {
  return tenantId === undefined ? separator : tenantPrefix(tenantId);
}

/** In epoch seconds; `undefined` for data kept forever. */
export function expiry(fromMs: number, days: number): number | undefined {
  return days === Infinity ? undefined : Math.ceil(fromMs / 1_000) + days * 86_400;
}
