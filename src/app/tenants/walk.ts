import type { StoredItem } from "./stored-item.ts";
import type { TenantSource } from "./tenant-source.ts";

/** Access to the rows of all tenants, with the operator's permissions instead of the server's. */
export interface TenantRows {
  /**
   * Reads a page of a table, and returns its rows that match the source's filter.
   * @param keysOnly - whether to read only the attributes that `verdict` needs.
   */
  page(source: TenantSource, from: StoredItem | undefined, keysOnly: boolean): Promise<RowPage>;
  /** Deletes up to {@link maxDeletes} rows, which may no longer exist. */
  remove(source: TenantSource, rows: readonly StoredItem[]): Promise<void>;
}

/** DynamoDB's limit for one call of `remove`. */
export const maxDeletes = 25;

export interface RowPage {
  readonly items: readonly StoredItem[];
  readonly scanned: number;
  /** Start of the next page. Absent on the last page. */
  readonly next?: StoredItem | undefined;
}

/** Position and counts of a traversal of all tables, from which it can resume. */
export interface WalkState {
  /** Number of the pass over all tables, from 1. */
  readonly pass: number;
  readonly at: number;
  /** Start of the next page. Absent at the start of a table. */
  readonly from?: StoredItem | undefined;
  /** Rows of the tenant found in this pass. */
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
   * Called with the tenant's rows of each page, even if there are none.
   * @param counted - counts rows as processed, and returns a state that still points to this page.
   */
  readonly visit: (
    source: TenantSource,
    own: readonly StoredItem[],
    counted: (rows: number) => WalkState,
  ) => Promise<void>;
  /** Called with each state from which a traversal can resume. */
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
