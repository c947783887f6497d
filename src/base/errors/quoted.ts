const longest = 80;

/** Formats any value on one bounded line. Never throws. */
export function quoted(value: unknown): string {
  return Array.isArray(value)
    ? shortened(`[${value.slice(0, longest).map(quotedItem).join(", ")}]`)
    : quotedItem(value);
}

function quotedItem(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(shortened(value));
    case "object":
      return value === null ? "null" : "an object";
    case "function":
      return "a function";
    case "symbol":
      return "a symbol";
    default:
      return shortened(String(value));
  }
}

function shortened(text: string): string {
  return text.length <= longest ? text : `${text.slice(0, longest)}...`;
}

/** In characters: the cost of a comparison is the product of both lengths. */
const mostCompared = 256;

/** Returns the candidate that `name` most likely misspells, in at most a third of its letters. */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let fewest = Math.floor(Math.min(name.length, mostCompared) / 3) + 1;
  for (const candidate of candidates) {
    const changes = distance(name.slice(0, mostCompared), candidate.slice(0, mostCompared));
    if (changes < fewest) {
      best = candidate;
      fewest = changes;
    }
  }
  return best;
}

function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length }, (_, column) => column + 1);
  let changes = to.length;
  for (let index = 0; index < from.length; index += 1) {
    let diagonal = index;
    changes = index + 1;
    row = row.map((above, column) => {
      changes = Math.min(changes + 1, above + 1, diagonal + (to[column] === from[index] ? 0 : 1));
      diagonal = above;
      return changes;
    });
  }
  return changes;
}
