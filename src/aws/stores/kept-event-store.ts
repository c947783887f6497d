import type { Clock } from "../../base/process/clock.ts";
import type { Database } from "../../base/types/database.ts";
import { envelopeText } from "../../parts/messages/envelope.ts";
import {
  dayOf,
  type KeptEventReader,
  type KeptEventStore,
  timeOf,
} from "../../parts/messages/kept-events.ts";
import { timeText } from "../../parts/messages/outbox-store.ts";
import { dayPartition, daysPartition, expiry, keptDays } from "./kept-days.ts";
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
      await days.note(event, nowMs, forDays);
      const { type, eventId, tenantId } = event;
      const key = { pk: dayPartition(event, dayOf(nowMs)), sk: `${timeText(nowMs)}#${eventId}` };
      const expiration = expiry(nowMs, forDays);
      // No proof, because proofs protect events on the bus and the row outlives the key ring's keys.
      const Item = { ...key, type, tenantId, expiration, event: envelopeText(event, { trace }) };
      return { Put: { TableName: tableName, Item } };
    },
  };
}

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
