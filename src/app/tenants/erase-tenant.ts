import type { StoredItem } from "./stored-item.ts";
import { firstState, maxDeletes, type Walk, type WalkState, walkTables } from "./walk.ts";

interface Erasure extends Pick<Walk, "sources" | "rows" | "keep"> {
  /** State of an interrupted erasure to resume. */
  readonly begun?: WalkState | undefined;
  /** Only counts rows. */
  readonly isDryRun: boolean;
}

interface Erased {
  readonly state: WalkState;
  /** The last pass found no rows, or rows are only counted. */
  readonly isDone: boolean;
}

/** If each pass finds rows, some process keeps writing them. */
const maxPasses = 5;
const concurrentCalls = 4;

/**
 * Deletes the rows of a tenant, pass by pass, until a pass finds none: rows may be written behind a
 * page that was already read. A later erasure completes an interrupted one.
 * @throws any error of the store.
 */
export async function eraseTenant(erasure: Erasure): Promise<Erased> {
  const { sources, rows, keep, begun, isDryRun } = erasure;
  const visit: Walk["visit"] = async (source, own, counted) => {
    // Rows that are only counted stay, and a resumed walk reads an interrupted page again. They
    // therefore count only when their page is complete.
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
