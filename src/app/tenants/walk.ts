import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import type { StoredItem, TenantSource } from "./tenant-source.ts";

/** Access to the rows of all tenants, with the operator's permissions. */
export interface TenantRows {
  /** Reads a page. @param keysOnly - whether to read only what `verdict` needs. */
  page(source: TenantSource, from: StoredItem | undefined, keysOnly: boolean): Promise<RowPage>;
  /** Deletes up to {@link maxDeletes} rows, which may no longer exist. */
  remove(source: TenantSource, rows: readonly StoredItem[]): Promise<void>;
}

/** DynamoDB's limit for one call of `remove`. */
export const maxDeletes = 25;

interface RowPage {
  readonly items: readonly StoredItem[];
  readonly scanned: number;
  /** Start of the next page. */
  readonly next?: StoredItem | undefined;
}

/** State from which a traversal of all tables can resume. */
export interface WalkState {
  /** Number of the pass, from 1. */
  readonly pass: number;
  readonly at: number;
  readonly from?: StoredItem | undefined;
  /** The tenant's rows in this pass. */
  readonly found: number;
  readonly counts: readonly TableCount[];
}

export interface TableCount {
  readonly scanned: number;
  readonly rows: number;
  /** Rows without a known owner, in the last pass. */
  readonly untold: number;
}

export interface Walk {
  readonly sources: readonly TenantSource[];
  readonly rows: TenantRows;
  readonly keysOnly: boolean;
  /**
   * Called with the tenant's rows of each page, even if the page has no such rows.
   * @param counted - counts rows as processed, and returns a state that still points to this page.
   */
  readonly visit: (
    source: TenantSource,
    own: readonly StoredItem[],
    counted: (rows: number) => WalkState,
  ) => Promise<void>;
  readonly keep: (state: WalkState) => Promise<void>;
}

export function firstState(sources: readonly TenantSource[]): WalkState {
  return {
    pass: 1,
    at: 0,
    found: 0,
    counts: sources.map(() => ({ scanned: 0, rows: 0, untold: 0 })),
  };
}

export async function walkTables(
  { sources, rows, keysOnly, visit, keep }: Walk,
  begun: WalkState,
): Promise<WalkState> {
  let state = begun;
  for (const source of sources.slice(begun.at)) {
    do {
      const { at, from } = state;
      const { items, scanned, next } = await rows.page(source, from, keysOnly);
      const { own = [], untold = [] } = Object.groupBy(items, (item) => source.verdict(item));
      const count = (change: (count: TableCount) => Partial<TableCount>) =>
        state.counts.map((known, index) => (index === at ? { ...known, ...change(known) } : known));
      await visit(source, own, (done) => {
        state = {
          ...state,
          found: state.found + done,
          counts: count(({ rows }) => ({ rows: rows + done })),
        };
        return state;
      });
      state = {
        ...state,
        at: next === undefined ? at + 1 : at,
        from: next,
        counts: count((known) => ({
          scanned: known.scanned + scanned,
          untold: (from === undefined ? 0 : known.untold) + untold.length,
        })),
      };
      await keep(state);
    } while (state.from !== undefined);
  }
  return state;
}

interface TenantWalk extends Pick<Walk, "sources" | "rows" | "keep"> {
  /** State of an interrupted walk to resume. */
  readonly begun?: WalkState | undefined;
}

interface Export extends TenantWalk {
  readonly write: (lines: string) => Promise<void>;
}

export function headerLine(header: {
  readonly tenant: string;
  /** Start of the export, in ISO 8601. */
  readonly exportedAt: string;
  readonly tables: readonly string[];
  readonly notCovered: readonly string[];
}): string {
  return `${JSON.stringify({ keelson: "tenant-export", format: 1, ...header })}\n`;
}

/**
 * Writes the rows of a tenant, one per line: `{ "table": "files", "item": { … } }`, with the item
 * in DynamoDB's JSON.
 *
 * @throws any error of the store or of `write`.
 */
export function exportTenant({ sources, rows, keep, begun, write }: Export): Promise<WalkState> {
  const visit: Walk["visit"] = async ({ table, exported }, own, counted) => {
    const lines = own.map((item) => JSON.stringify({ table, item: dynamoJson(exported(item)) }));
    await write(lines.map((line) => `${line}\n`).join(""));
    counted(own.length);
  };
  return walkTables({ sources, rows, keysOnly: false, visit, keep }, begun ?? firstState(sources));
}

export function dynamoJson(item: StoredItem): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [name, jsonOf(value)]));
}

function jsonOf(value: AttributeValue): unknown {
  if (value.B !== undefined) return { B: base64(value.B) };
  if (value.BS !== undefined) return { BS: value.BS.map(base64) };
  if (value.L !== undefined) return { L: value.L.map(jsonOf) };
  if (value.M !== undefined) return { M: dynamoJson(value.M) };
  return value;
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}

interface Erasure extends TenantWalk {
  readonly isDryRun: boolean;
}

/** If even the last pass finds rows, some process keeps writing them. */
const maxPasses = 5;
const concurrentCalls = 4;

/**
 * Deletes the rows of a tenant, pass by pass, until a pass finds no rows, because rows may be written
 * to pages that a pass has already read. `isDone` is `true` if no rows were found, or if rows were
 * only counted.
 *
 * @throws any error of the store.
 */
export async function eraseTenant({ sources, rows, keep, begun, isDryRun }: Erasure) {
  const visit: Walk["visit"] = async (source, own, counted) => {
    // If it is resumed, a dry run reads an interrupted page again, so it saves no count within one.
    if (isDryRun) return void counted(own.length);
    for (const group of chunks(own, maxDeletes * concurrentCalls)) {
      await Promise.all(chunks(group, maxDeletes).map((batch) => rows.remove(source, batch)));
      await keep(counted(group.length));
    }
  };
  let state = begun ?? firstState(sources);
  for (;;) {
    state = await walkTables({ sources, rows, keysOnly: true, visit, keep }, state);
    const isDone = isDryRun || state.found === 0;
    if (isDone || state.pass === maxPasses) return { state, isDone };
    state = { ...state, pass: state.pass + 1, at: 0, found: 0 };
    await keep(state);
  }
}

function chunks(items: readonly StoredItem[], size: number): (readonly StoredItem[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}
