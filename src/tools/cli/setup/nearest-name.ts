/** Returns the name that a mistyped one probably means. A third of its characters may differ. */
export function nearestName(typed: string, names: Iterable<string>): string | undefined {
  let [nearest, fewest]: [string | undefined, number] = [undefined, typed.length / 3];
  for (const name of names) {
    const edits = editsBetween(typed, name);
    if (edits <= fewest && edits > 0) [nearest, fewest] = [name, edits - 0.5];
  }
  return nearest;
}

/** The number of inserted, removed, replaced or swapped characters. */
function editsBetween(from: string, to: string): number {
  // A mistyped name is never this long; hostile input would take quadratic time.
  if (from.length > 40) return Number.POSITIVE_INFINITY;
  let before: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row += 1) {
    const next = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwapped =
        row > 1 &&
        column > 1 &&
        from[row - 1] === to[column - 2] &&
        from[row - 2] === to[column - 1];
      next[column] = Math.min(
        at(last, column) + 1,
        at(next, column - 1) + 1,
        at(last, column - 1) + (isSame ? 0 : 1),
        isSwapped ? at(before, column - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [before, last] = [last, next];
  }
  return at(last, to.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] as number; // safe cast: each row has all columns
}
