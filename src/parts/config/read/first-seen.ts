/**
 * Creates a function that returns whether a name is new. It remembers the latest `limit` names; an
 * older name is new again.
 */
export function createFirstSeen(limit: number): (name: string) => boolean {
  const names = new Set<string>();
  return (name) => {
    if (names.has(name)) return false;
    names.add(name);
    // The cast is safe: the set is not empty.
    if (names.size > limit) names.delete(names.values().next().value as string);
    return true;
  };
}
