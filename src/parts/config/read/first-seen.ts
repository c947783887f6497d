export interface FirstSeen {
  /** Whether `name` is not among the names remembered; remembers it. */
  isNew(name: string): boolean;
}

/** Remembers up to `limit` names; beyond that it forgets the oldest, which then counts as new. */
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
