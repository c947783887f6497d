/** Limit for the bytes that a server holds for all its requests. */
export interface ByteBudget {
  readonly heldBytes: number;
  /** Takes bytes if the limit allows, and returns whether it does. */
  take(bytes: number): boolean;
  give(bytes: number): void;
}

export interface HeldBytes {
  /** Highest number of bytes held so far. */
  readonly mostBytes: number;
  take(bytes: number): boolean;
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
