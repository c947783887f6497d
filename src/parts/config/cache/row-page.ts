import { type ConfigRow, isCurrent } from "../read/rows.ts";

/** What the cache knows of one row; `undefined` is the knowledge that there is none. */
interface Known {
  readonly row: ConfigRow | undefined;
  /** When this version was first seen. */
  readonly sinceMs: number;
  /** The flight in the air when this process wrote the row. */
  readonly overtook: object | undefined;
}

/** The rows of one feature's keys in one partition: what is fetched, and what ages, together. */
export interface Page {
  readonly partition: string;
  readonly keys: readonly string[];
  readonly rows: Map<string, Known>;
  /** Grows with each change of a row and each answer. */
  stamp: number;
  /** When the answer was asked for that the rows come from; `undefined` until the first one. */
  askedMs: number | undefined;
  /** From when on a read asks again. */
  dueMs: number;
  /** From when on a read waits for the answer. */
  staleMs: number;
  /** Who is fetching the rows at the moment. */
  flight: object | undefined;
  /** The last answer was a failure. */
  failure: { readonly error: unknown; readonly pausedUntilMs: number } | undefined;
  /** When the last `config.stale` was logged since the last good answer. */
  reportedMs: number | undefined;
}

/** How old rows may get, in milliseconds. */
export interface Ages {
  readonly ttlMs: number;
  readonly maxStaleMs: number;
}

/**
 * A store that answers from a replica may lag behind what it answered before, and nothing in an
 * answer tells that a row is gone from that it has not arrived: a row younger than this stays.
 */
const replicaLagMs = 2_000;

/** The share of `ttlMs` by which a refresh may come early, so that processes started together drift apart. */
const jitter = 0.1;

/** Makes a page of which nothing is known yet. */
export function createPage(partition: string, keys: readonly string[]): Page {
  return {
    partition,
    keys,
    rows: new Map(),
    stamp: 0,
    askedMs: undefined,
    dueMs: 0,
    staleMs: 0,
    flight: undefined,
    failure: undefined,
    reportedMs: undefined,
  };
}

/** Whether a read at `nowMs` may use the rows without asking. A clock that went back makes them old. */
export function isFresh(page: Page, nowMs: number): boolean {
  return page.askedMs !== undefined && nowMs >= page.askedMs && nowMs < page.dueMs;
}

/** Whether a read at `nowMs` may use the rows while they are being refreshed. */
export function isUsable(page: Page, nowMs: number): boolean {
  return page.askedMs !== undefined && nowMs >= page.askedMs && nowMs < page.staleMs;
}

/** What a flight has read: one row for each of the page's keys. */
export interface LandedRows {
  readonly rows: readonly (ConfigRow | undefined)[];
  readonly flight: object;
  readonly askedMs: number;
  readonly nowMs: number;
  /** From 0 to 1. */
  readonly random: number;
}

/** Takes in the rows, unless its flight is no longer the page's. */
export function land(
  page: Page,
  { rows, flight, askedMs, nowMs, random }: LandedRows,
  { ttlMs, maxStaleMs }: Ages,
): void {
  if (page.flight !== flight) return;
  for (const [index, key] of page.keys.entries()) {
    const row = rows[index];
    const known = page.rows.get(key);
    if (known === undefined || supersedes(row, known, flight, askedMs, nowMs)) {
      const sinceMs =
        known !== undefined && known.row?.version === row?.version ? known.sinceMs : askedMs;
      page.rows.set(key, { row, sinceMs, overtook: undefined });
    }
  }
  const isBackground = isUsable(page, askedMs);
  page.askedMs = askedMs;
  page.dueMs = askedMs + ttlMs * (isBackground ? 1 - jitter * random : 1);
  page.staleMs = askedMs + maxStaleMs;
  page.flight = undefined;
  page.failure = undefined;
  page.reportedMs = undefined;
  page.stamp += 1;
}

/**
 * Whether an answer takes the place of what is known:
 *
 * | what is known                          | the answer                     | |
 * |----------------------------------------|--------------------------------|---|
 * | written here while the answer was sought | any                          | no |
 * | no row                                 | any                            | yes |
 * | a row                                  | the same version, or a higher  | yes |
 * | a row seen within the replica's lag    | a lower version, or no row     | no |
 * | an older one                           | no row                         | yes |
 * | an older one, expired                  | a lower version                | yes: the store had deleted it |
 * | an older one that counts, or a tombstone | a lower version              | no |
 */
function supersedes(
  row: ConfigRow | undefined,
  known: Known,
  flight: object,
  askedMs: number,
  nowMs: number,
): boolean {
  if (known.overtook === flight) return false;
  if (known.row === undefined) return true;
  if (row !== undefined && !(row.version < known.row.version)) return true;
  if (known.sinceMs + replicaLagMs > askedMs) return false;
  return row === undefined || isExpired(known.row, nowMs);
}

function isExpired(row: ConfigRow, nowMs: number): boolean {
  return row.deleted !== true && !isCurrent(row, nowMs);
}

/**
 * Notes a row that this process has written. A lower version than the known one is out of date, and
 * is left, unless `isUnchecked`: then the row is taken as it is.
 */
export function note(
  page: Page,
  key: string,
  row: ConfigRow,
  nowMs: number,
  isUnchecked: boolean,
): void {
  const known = page.rows.get(key)?.row;
  if (
    !isUnchecked &&
    known !== undefined &&
    row.version < known.version &&
    !isExpired(known, nowMs)
  )
    return;
  page.rows.set(key, { row, sinceMs: nowMs, overtook: page.flight });
  page.stamp += 1;
}

/** Makes the next read wait for the store, and what is in the air come to nothing. */
export function invalidate(page: Page): void {
  page.dueMs = 0;
  page.staleMs = 0;
  page.flight = undefined;
  page.stamp += 1;
}
