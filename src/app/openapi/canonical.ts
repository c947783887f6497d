/** JSON with sorted members, so that equal values give equal strings. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) =>
    typeof part !== "object" || part === null || Array.isArray(part)
      ? part
      : Object.fromEntries(sortedBy(Object.entries(part), ([name]) => name)),
  );
}

export function sortedBy<Item>(items: readonly Item[], textOf: (item: Item) => string): Item[] {
  return items.toSorted((one, other) => (textOf(one) < textOf(other) ? -1 : 1));
}
