/** Those who wait for something to happen to a queue. */
export interface LongPolls {
  /** Waits until the queue is told of, the time is over, or the signal is aborted. */
  wait(queue: string, ms: number, signal: AbortSignal): Promise<void>;
  /** Something happened to the queue: everybody who waits looks again. */
  wake(queue: string): void;
}

/** Creates {@link LongPolls}. */
export function createLongPolls(): LongPolls {
  const waiting = new Map<string, Set<() => void>>();
  return {
    async wait(queue, ms, signal) {
      if (signal.aborted) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const look = () => resolve();
      const waiters = waiting.get(queue) ?? new Set();
      waiting.set(queue, waiters.add(look));
      const timer = setTimeout(look, ms);
      signal.addEventListener("abort", look);
      await promise;
      signal.removeEventListener("abort", look);
      clearTimeout(timer);
      waiters.delete(look);
      if (waiters.size === 0) waiting.delete(queue);
    },
    wake(queue) {
      for (const look of waiting.get(queue) ?? []) look();
    },
  };
}
