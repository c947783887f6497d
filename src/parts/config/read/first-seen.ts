/** Creates a function that returns whether a name is new: not among the latest `limit` names. */
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
