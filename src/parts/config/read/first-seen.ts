/**
 * Returns whether a name is new. Remembers up to `limit` names; beyond that it forgets the oldest,
 * which then counts as new.
 */
export function createFirstSeen(limit: number): (name: string) => boolean {
  const names = new Set<string>();
  return (name) => {
    if (names.has(name)) return false;
    names.add(name);
    // Safe: the set is not empty.
    if (names.size > limit) names.delete(names.values().next().value as string);
    return true;
  };
}
