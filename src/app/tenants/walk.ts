import type { StoredItem } from "./stored-item.ts";
import type { TenantSource } from "./tenant-source.ts";

/** Reads and deletes rows, of all tenants: the calls of whoever operates the server, not of the server. */
export interface TenantRows {
  /**
   * Reads a page of a table: what its filter lets through.
   *
   * @param keysOnly - whether the verdict and the key are all that is wanted.
   */
  page(source: TenantSource, from: StoredItem | undefined, keysOnly: boolean): Promise<RowPage>;
  /** Deletes rows, at most {@link maxDeletes}; those that are gone already too. */
  remove(source: TenantSource, rows: readonly StoredItem[]): Promise<void>;
}

/** How many rows DynamoDB deletes in one call. */
export const maxDeletes = 25;

/** Some rows of a table. */
export interface RowPage {
  readonly items: readonly StoredItem[];
  /** How many rows were looked at for them. */
  readonly scanned: number;
  /** Where the next page begins; absent at the end. */
  readonly next?: StoredItem | undefined;
}

/** How far a walk through the tables has come: what is needed to go on, and what it has counted. */
export interface WalkState {
  /** Which walk through all tables, the first being 1. */
  readonly pass: number;
  /** The table that it is at, by its place. */
  readonly at: number;
  /** Where its next page begins; absent at the table's beginning. */
  readonly from?: StoredItem | undefined;
  /** How many rows this pass has found. */
  readonly found: number;
  /** One for each table, in their order. */
  readonly counts: readonly TableCount[];
}

/** What was counted in a table. */
export interface TableCount {
  /** Rows looked at, of all passes. */
  readonly scanned: number;
  /** The tenant's, of all passes. */
  readonly rows: number;
  /** Rows of the last pass that do not say whose they are. */
  readonly untold: number;
}

/** What a walk does. */
export interface Walk {
  readonly sources: readonly TenantSource[];
  readonly rows: TenantRows;
  readonly keysOnly: boolean;
  /**
   * Called with the tenant's rows of each page, none included.
   *
   * @param counted - counts rows that are done with, and gives the state that says so: the page is still to be gone through.
   */
  readonly visit: (
    source: TenantSource,
    own: readonly StoredItem[],
    counted: (rows: number) => WalkState,
  ) => Promise<void>;
  /** Called with each state that a later walk can begin from. */
  readonly keep: (state: WalkState) => Promise<void>;
}

/** Where a walk begins that nobody began before. */
export function firstState(sources: readonly TenantSource[]): WalkState {
  return {
    pass: 1,
    at: 0,
    found: 0,
    counts: sources.map(() => ({ scanned: 0, rows: 0, untold: 0 })),
  };
}

/** Walks through all tables from where `state` says to their end, and returns where it is then. */
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
