import type { StoredItem } from "./stored-item.ts";
import { firstState, maxDeletes, type Walk, type WalkState, walkTables } from "./walk.ts";

/** How an erasure goes. */
export interface Erasure extends Pick<Walk, "sources" | "rows" | "keep"> {
  /** Where one that was cut stands; `undefined` for a new one. */
  readonly begun?: WalkState | undefined;
  /** Whether rows are only counted. */
  readonly isDryRun: boolean;
}

/** What came of it. */
export interface Erased {
  readonly state: WalkState;
  /** Whether the last walk through all tables has found nothing; always, where rows are only counted. */
  readonly isDone: boolean;
}

/** After so many walks through all tables that have each found rows, somebody keeps writing them. */
const maxPasses = 5;
/** How many calls of DynamoDB are under way at once. */
const concurrentCalls = 4;

/**
 * Deletes the rows of a tenant, walk by walk, until one finds none: rows that are written behind a page that was read
 * are found by the next. What was deleted stays so wherever it is cut, and a later one deletes the rest.
 *
 * @throws whatever the store throws.
 */
export async function eraseTenant({
  sources,
  rows,
  keep,
  begun,
  isDryRun,
}: Erasure): Promise<Erased> {
  const visit: Walk["visit"] = async (source, own, counted) => {
    // Its rows stay, so that a later walk meets all of a page again that it was cut in: they count once the page is done with.
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
