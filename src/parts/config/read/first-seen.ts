/** Detects names that were not seen before. */
export interface FirstSeen {
  /** Returns whether `name` is not among the names still remembered, and remembers it. */
  isNew(name: string): boolean;
}

/**
 * Remembers up to `limit` names. Beyond the limit it forgets the oldest name, which then counts as
 * new again.
 */
export function createFirstSeen(limit: number): FirstSeen {
  const names = new Set<string>();
  return {
    isNew: (name) => {
      if (names.has(name)) return false;
      names.add(name);
      if (names.size > limit) {
        for (const oldest of names) {
          names.delete(oldest);
          break;
        }
      }
      return true;
    },
  };
}
