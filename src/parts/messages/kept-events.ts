import type { TraceHeaders } from "../../base/request/trace.ts";
import type { Database } from "../../base/types/database.ts";
import type { TransactionItem } from "../once/claim-store.ts";
import type { SharedEvent } from "./envelope.ts";

/** An event as it is to be kept. */
export type KeptContent = SharedEvent<Readonly<Record<string, unknown>>>;

/** A kept event as it is stored. */
export interface KeptRow {
  /** Its place among the events of its tenant and type: when it was published, in milliseconds, and its ID. */
  readonly sort: string;
  readonly atMs: number;
  /** The envelope, as it goes over the wire. */
  readonly text: string;
  /** From when on it counts as gone, in seconds since the epoch; `undefined` where it never does. */
  readonly expiresAt: number | undefined;
}

/** Events of one tenant and type. `undefined` is the tenant of events that have none. */
export interface KeptStream {
  readonly tenantId?: string | undefined;
  readonly type: string;
}

/** One page of what is stored in order. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** Where it ends; `undefined` where nothing follows. */
  readonly last: string | undefined;
}

/** Reads kept events. Each call reads one page. */
export interface KeptEventReader {
  /** The days that have events, `2026-11-22`, from one to another, both included. */
  days(stream: KeptStream, from: string, until: string): Promise<Page<string>>;
  /** Rows of one day, from a place on, which is included, up to another, which is not. */
  rows(
    stream: KeptStream,
    day: string,
    from: string,
    until: string,
    limit: number,
  ): Promise<Page<KeptRow>>;
}

/** Keeps events. */
export interface KeptEventStore extends KeptEventReader {
  /** Notes the day of an event, and makes what puts the event, for the transaction that publishes it. */
  keep(event: KeptContent, keptDays: number, trace?: TraceHeaders): Promise<TransactionItem>;
  /** Reads through the database of a request. */
  through(database: Database): KeptEventReader;
}

/** Which rows are read. */
export interface KeptRange {
  /** The first place, included: of {@link timeText} or {@link behind}. */
  readonly from: string;
  /** The last time, excluded, in milliseconds. */
  readonly untilMs: number;
  /** Rows that had expired by then are left out: DynamoDB deletes them days later. */
  readonly nowMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** The last millisecond that a place can tell. */
export const endOfTime = Date.UTC(9999, 11, 31);
/** How many rows are read at once: of the largest events 1 MB, which is DynamoDB's page, has four. */
const pageSize = 100;

/**
 * Rows in their order, page by page. A day without events costs nothing: the days that have some are listed.
 *
 * @throws the signal's reason, before the next row.
 */
export async function* keptRows(
  reader: KeptEventReader,
  stream: KeptStream,
  range: KeptRange,
): AsyncGenerator<KeptRow> {
  const { from: start, untilMs, nowMs, signal } = range;
  const until = timeText(untilMs);
  for await (const day of daysOf(reader, stream, dayOf(timeOf(start)), dayOf(untilMs), signal)) {
    let from: string | undefined = start;
    while (from !== undefined) {
      signal?.throwIfAborted();
      const { items, last }: Page<KeptRow> = await reader.rows(stream, day, from, until, pageSize);
      for (const row of items) {
        signal?.throwIfAborted();
        if (row.expiresAt === undefined || row.expiresAt * 1_000 > nowMs) yield row;
      }
      from = last === undefined ? undefined : behind(last);
    }
  }
}

async function* daysOf(
  reader: KeptEventReader,
  stream: KeptStream,
  from: string,
  until: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<string> {
  let next: string | undefined = from;
  while (next !== undefined) {
    signal?.throwIfAborted();
    const { items, last }: Page<string> = await reader.days(stream, next, until);
    yield* items;
    next = last === undefined ? undefined : behind(last);
  }
}

/** The least text behind another: places and days are all as long as each other. */
export function behind(text: string): string {
  return `${text} `;
}

const timeDigits = 15;

/** Milliseconds since the epoch, so that texts are in the order of numbers. */
export function timeText(ms: number): string {
  return String(ms).padStart(timeDigits, "0");
}

/** The day of a time, in UTC: `2026-11-22`. */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** The time of a place. */
export function timeOf(sort: string): number {
  return Number(sort.slice(0, timeDigits));
}
