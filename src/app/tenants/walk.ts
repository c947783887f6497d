import type { StoredItem } from "./stored-item.ts";
import type { TenantSource } from "./tenant-source.ts";

/** Rows of all tenants, with the permissions of the operator, not of the server. */
export interface TenantRows {
  /**
   * Reads the rows of a page that match the source's filter.
   * @param keysOnly - reads only what the verdict needs.
   */
  page(source: TenantSource, from: StoredItem | undefined, keysOnly: boolean): Promise<RowPage>;
  /** Deletes up to {@link maxDeletes} rows, which may no longer exist. */
  remove(source: TenantSource, rows: readonly StoredItem[]): Promise<void>;
}

/** DynamoDB's limit for one call. */
export const maxDeletes = 25;

export interface RowPage {
  readonly items: readonly StoredItem[];
  readonly scanned: number;
  /** Absent on the last page. */
  readonly next?: StoredItem | undefined;
}

/** Position of a walk, from which it can resume, and its counts. */
export interface WalkState {
  /** Pass over all tables, from 1. */
  readonly pass: number;
  readonly at: number;
  /** Absent at the start of a table. */
  readonly from?: StoredItem | undefined;
  /** In this pass. */
  readonly found: number;
  /** One per table. */
  readonly counts: readonly TableCount[];
}

export interface TableCount {
  /** Rows scanned, in all passes. */
  readonly scanned: number;
  /** Rows of the tenant, in all passes. */
  readonly rows: number;
  /** Rows without a known owner, in the last pass. */
  readonly untold: number;
}

export interface Walk {
  readonly sources: readonly TenantSource[];
  readonly rows: TenantRows;
  readonly keysOnly: boolean;
  /**
   * Receives the tenant's rows of each page, also an empty list.
   * @param counted - counts rows as processed. The state that it returns still points to this page.
   */
  readonly visit: (
    source: TenantSource,
    own: readonly StoredItem[],
    counted: (rows: number) => WalkState,
  ) => Promise<void>;
  /** Receives each state from which a walk can resume. */
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
  const count = (change: (count: TableCount) => TableCount) =>
    state.counts.map((counts, index) => (index === state.at ? change(counts) : counts));
  for (const source of sources.slice(begun.at)) {
    do {
      const { items, scanned, next } = await rows.page(source, state.from, keysOnly);
      const told = items.map((item) => source.verdict(item));
      const own = items.filter((_, index) => told[index] === "own");
      await visit(source, own, (done) => {
        state = {
          ...state,
          found: state.found + done,
          counts: count((counts) => ({ ...counts, rows: counts.rows + done })),
        };
        return state;
      });
      const isFirst = state.from === undefined;
      const untold = told.filter((verdict) => verdict === "untold").length;
      state = {
        ...state,
        from: next,
        counts: count((counts) => ({
          ...counts,
          scanned: counts.scanned + scanned,
          untold: (isFirst ? 0 : counts.untold) + untold,
        })),
      };
      if (next === undefined) state = { ...state, at: state.at + 1 };
      await keep(state);
    } while (state.from !== undefined);
  }
  return state;
}
