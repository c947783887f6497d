/** Tells what is seen for the first time. */
export interface FirstSeen {
  /** Whether `name` is new: not among the last names seen, as far as they are remembered. */
  isNew(name: string): boolean;
}

/** Remembers up to `limit` names; beyond that the oldest is forgotten, and is new again. */
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
