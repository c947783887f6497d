/** Those who wait for something to happen to a queue. */
export interface LongPolls {
  /** Waits until the queue is told of, the time is over, or the signal is aborted. Gives whether it is to wait no more. */
  wait(queue: string, ms: number, signal: AbortSignal): Promise<boolean>;
  /** Something happened to the queue: everybody who waits looks again. */
  wake(queue: string): void;
  /** Nobody who waits for the queue now is to wait any longer. */
  end(queue: string): void;
}

/** Creates {@link LongPolls}. */
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
