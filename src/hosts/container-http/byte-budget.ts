/** Bytes that a server holds at once, all its requests together. */
export interface ByteBudget {
  /** How many are held. */
  readonly heldBytes: number;
  /** Takes so many, where that many are left. */
  take(bytes: number): boolean;
  give(bytes: number): void;
}

/** What one request holds of a budget. */
export interface HeldBytes {
  /** How many it has held at the most. */
  readonly mostBytes: number;
  /** Takes so many more, where that many are left. */
  take(bytes: number): boolean;
  /** Gives back all that it holds. */
  release(): void;
}

export function createByteBudget(limitBytes: number): ByteBudget {
  let held = 0;
  return {
    get heldBytes() {
      return held;
    },
    take: (bytes) => {
      if (held + bytes > limitBytes) return false;
      held += bytes;
      return true;
    },
    give: (bytes) => {
      held -= bytes;
    },
  };
}

/** Follows what one request holds of `budget`. */
export function holdBytes(budget: ByteBudget): HeldBytes {
  let held = 0;
  let mostBytes = 0;
  return {
    get mostBytes() {
      return mostBytes;
    },
    take: (bytes) => {
      if (!budget.take(bytes)) return false;
      held += bytes;
      mostBytes = held;
      return true;
    },
    release: () => {
      budget.give(held);
      held = 0;
    },
  };
}
