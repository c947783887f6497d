import { type ConfigRow, isCurrent, type RowAddress } from "../read/rows.ts";

interface Known {
  readonly row: ConfigRow | undefined;
  readonly sinceMs: number;
  /** The fetch in progress when this process wrote the row. */
  readonly overtook: object | undefined;
}

/** Rows of one feature in one partition, which are fetched and expire together. */
export interface Page {
  readonly partition: string;
  readonly keys: readonly string[];
  readonly rows: Map<string, Known>;
  /** Increases with each change of a row and each response. */
  stamp: number;
  /** When the cached rows were requested; `undefined` until the first response. */
  askedMs: number | undefined;
  /** Time from which a read starts a refresh. */
  dueMs: number;
  /** Time from which a read waits for the response. */
  staleMs: number;
  flight: Flight | undefined;
  failure: Failure | undefined;
  /** Last `config.stale` log line since the last successful fetch. */
  reportedMs: number | undefined;
}

interface Failure {
  readonly error: unknown;
  readonly failedMs: number;
  /** 0 for a page that was never fetched: its reads have no outdated rows to return. */
  readonly pauseMs: number;
}

/** One call to the store for one or more pages. */
export interface Flight {
  readonly askedMs: number;
  readonly pages: Page[];
  readonly addresses: RowAddress[];
  /** Resolves when the call succeeds, fails or is abandoned; never rejects. */
  readonly done: Promise<void>;
  failure: { readonly error: unknown } | undefined;
  readonly settle: (outcome: Outcome) => void;
}

export type Outcome =
  | { readonly error: unknown }
  | { readonly rows: readonly (ConfigRow | undefined)[] };

export interface Ages {
  readonly ttlMs: number;
  readonly maxStaleMs: number;
}

/** Maximum replica lag: a read may return older data, so a row first seen more recently stays. */
const replicaLagMs = 2_000;

/** Fraction of `ttlMs` by which a refresh may run early, so that processes drift apart. */
const jitter = 0.1;

/** False if the clock was set back to before `askedMs`, because the age is then unknown. */
export function isFresh(page: Page, nowMs: number): boolean {
  return page.askedMs !== undefined && nowMs >= page.askedMs && nowMs < page.dueMs;
}

export function isUsable(page: Page, nowMs: number): boolean {
  return page.askedMs !== undefined && nowMs >= page.askedMs && nowMs < page.staleMs;
}

interface LandedRows {
  readonly rows: readonly (ConfigRow | undefined)[];
  readonly flight: Flight;
  readonly nowMs: number;
  readonly random: number;
}

/** Ignores the rows of a fetch that was abandoned or replaced in the meantime. */
export function land(
  page: Page,
  { rows, flight, nowMs, random }: LandedRows,
  { ttlMs, maxStaleMs }: Ages,
): void {
  if (page.flight !== flight) return;
  const { askedMs } = flight;
  for (const [index, key] of page.keys.entries()) {
    const row = rows[index];
    const known = page.rows.get(key);
    if (known === undefined || supersedes(row, known, flight, nowMs)) {
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
 * | known row                        | fetched row               | replaces            |
 * |----------------------------------|---------------------------|---------------------|
 * | written here during the fetch    | any                       | no                  |
 * | none                             | any                       | yes                 |
 * | any                              | same or higher version    | yes                 |
 * | first seen within replica lag    | lower version, or none    | no                  |
 * | seen earlier                     | none                      | yes                 |
 * | seen earlier, expired            | lower version             | yes: it was deleted |
 * | seen earlier, valid or tombstone | lower version, later time | yes: it was erased  |
 * | seen earlier, valid or tombstone | lower version             | no                  |
 */
function supersedes(
  row: ConfigRow | undefined,
  known: Known,
  flight: Flight,
  nowMs: number,
): boolean {
  if (known.overtook === flight) return false;
  if (known.row === undefined) return true;
  if (row !== undefined && !isOlder(row, known.row)) return true;
  if (known.sinceMs + replicaLagMs > flight.askedMs) return false;
  return row === undefined || isExpired(known.row, nowMs) || isLater(row, known.row);
}

/** No row is older than one that something else has written without a valid version. */
function isOlder(row: ConfigRow, known: ConfigRow): boolean {
  return Number.isSafeInteger(known.version) && row.version < known.version;
}

/**
 * An erased tenant whose ID is in use again has new versions. A row restored from a backup has an
 * earlier time; a row written by hand may have none, and is then never later.
 */
function isLater(row: ConfigRow, known: ConfigRow): boolean {
  return Date.parse(String(row.updatedAt)) > Date.parse(String(known.updatedAt));
}

function isExpired(row: ConfigRow, nowMs: number): boolean {
  return row.deleted !== true && !isCurrent(row, nowMs);
}

export function note(
  page: Page,
  key: string,
  row: ConfigRow,
  nowMs: number,
  isUnchecked: boolean,
): void {
  const known = page.rows.get(key);
  if (!isUnchecked && known?.row !== undefined && isOlder(row, known.row)) {
    const mayBeErased = known.sinceMs + replicaLagMs <= nowMs;
    if (!isExpired(known.row, nowMs) && !(mayBeErased && isLater(row, known.row))) return;
  }
  page.rows.set(key, { row, sinceMs: nowMs, overtook: page.flight });
  page.stamp += 1;
}

export function invalidate(page: Page): void {
  page.dueMs = 0;
  page.staleMs = 0;
  page.flight = undefined;
  page.stamp += 1;
}
