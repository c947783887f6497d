export interface LongPolls {
  /** Waits for a change, the time or the signal. Resolves to `true` if the caller must stop. */
  wait(queue: string, ms: number, signal: AbortSignal): Promise<boolean>;
  wake(queue: string): void;
  end(queue: string): void;
}

export function createLongPolls(): LongPolls {
  const waiting = new Map<string, Set<(hasEnded: boolean) => void>>();
  const tell = (queue: string, hasEnded: boolean) => {
    for (const resolve of waiting.get(queue) ?? []) resolve(hasEnded);
  };
  return {
    async wait(queue, ms, signal) {
      if (signal.aborted) return true;
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const look = () => resolve(false);
      const waiters = waiting.get(queue) ?? new Set();
      waiting.set(queue, waiters.add(resolve));
      const timer = setTimeout(look, ms);
      signal.addEventListener("abort", look);
      const hasEnded = await promise;
      signal.removeEventListener("abort", look);
      clearTimeout(timer);
      waiters.delete(resolve);
      if (waiters.size === 0) waiting.delete(queue);
      return hasEnded;
    },
    wake: (queue) => tell(queue, false),
    end: (queue) => tell(queue, true),
  };
}
