import type { TraceHeaders } from "../../base/request/trace.ts";
import type { Database } from "../../base/types/database.ts";
import type { TransactionItem } from "../once/claim-store.ts";
import type { SharedEvent } from "./envelope.ts";
import { timeDigits, timeText } from "./outbox-store.ts";

/** Kept event, as returned by `ctx.events`. */
export interface KeptEvent<Payload = unknown> extends SharedEvent<Payload> {
  /** Time of publication. Events of a type are ordered by this time, then by ID. */
  readonly keptAt: Date;
}

/** Range of kept events to read. */
export interface EventRange {
  /** Start of the range, inclusive. Default: the time of the oldest event. */
  readonly since?: Date;
  /** End of the range, exclusive. Default: no end. */
  readonly until?: Date;
  /** Maximum number of events. Default: all. */
  readonly limit?: number;
}

export type KeptContent = SharedEvent<Readonly<Record<string, unknown>>>;

export interface KeptRow {
  /** Publication time in milliseconds, then ID. */
  readonly sort: string;
  readonly atMs: number;
  readonly text: string;
  /** Time from which the event counts as deleted, in epoch seconds, if it expires. */
  readonly expiresAt: number | undefined;
}

export interface KeptStream {
  readonly tenantId?: string | undefined;
  readonly type: string;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  /** Position of the last item; `undefined` on the last page. */
  readonly last: string | undefined;
}

export interface KeptEventReader {
  /** Days with events, such as `2026-11-22`, in a range that includes both ends. */
  days(stream: KeptStream, from: string, until: string): Promise<Page<string>>;
  /** Rows of one day, from a position (inclusive) to another (exclusive). */
  rows(
    stream: KeptStream,
    day: string,
    from: string,
    until: string,
    limit: number,
  ): Promise<Page<KeptRow>>;
}

export interface KeptEventStore extends KeptEventReader {
  /** Records the day of an event, and returns the item for the publishing transaction. */
  keep(event: KeptContent, keptDays: number, trace?: TraceHeaders): Promise<TransactionItem>;
  through(database: Database): KeptEventReader;
}

export interface KeptRange {
  /** Position, inclusive: a result of {@link timeText} or {@link behind}. */
  readonly from: string;
  readonly untilMs: number;
  /** Rows that have expired are skipped, because DynamoDB deletes them days later. */
  readonly nowMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Latest time that a position can contain, in epoch milliseconds. */
export const endOfTime = Date.UTC(9999, 11, 31);
/** Rows per read. A page of DynamoDB, 1 MB, holds only four of the largest events. */
const pageSize = 100;

/** In order, only of days that have events. @throws the signal's abort reason, before the next. */
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

/** Sorts after `text` and before later positions or days, whose length is fixed. */
export function behind(text: string): string {
  return `${text} `;
}

export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

export function timeOf(sort: string): number {
  return Number(sort.slice(0, timeDigits));
}
