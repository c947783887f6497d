import type { StoredItem } from "./stored-item.ts";
import { firstState, maxDeletes, type Walk, type WalkState, walkTables } from "./walk.ts";

interface Erasure extends Pick<Walk, "sources" | "rows" | "keep"> {
  /** State of an interrupted erasure to resume. */
  readonly begun?: WalkState | undefined;
  readonly isDryRun: boolean;
}

interface Erased {
  readonly state: WalkState;
  /** Whether the last pass found no rows. `true` if rows are only counted. */
  readonly isDone: boolean;
}

/** If even the last pass finds rows, some process keeps writing them. */
const maxPasses = 5;
const concurrentCalls = 4;

/**
 * Deletes the rows of a tenant, pass by pass, until a pass finds none, because rows may be written
 * to pages that a pass has already read. A later call can resume an interrupted erasure.
 * @throws any error of the store.
 */
export async function eraseTenant(erasure: Erasure): Promise<Erased> {
  const { sources, rows, keep, begun, isDryRun } = erasure;
  const visit: Walk["visit"] = async (source, own, counted) => {
    // A resumed traversal reads an interrupted page again. A dry run leaves the page's rows in
    // place, so it saves their count only with the complete page.
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
