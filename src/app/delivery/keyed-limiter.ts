/** Runs something as soon as its key has room, and returns its result. Throws the signal's reason if it aborts meanwhile. */
export type KeyedLimiter = <Result>(
  key: string,
  signal: AbortSignal,
  run: () => Promise<Result>,
) => Promise<Result>;

interface Lane {
  running: number;
  readonly waiting: Set<() => void>;
}

/** Creates a limiter that runs at most `most` at once for each key; the others wait, first come, first served. */
export function createKeyedLimiter(most: number): KeyedLimiter {
  const lanes = new Map<string, Lane>();
  return async (key, signal, run) => {
    signal.throwIfAborted();
    const lane = lanes.get(key) ?? { running: 0, waiting: new Set() };
    lanes.set(key, lane);
    if (lane.running < most) lane.running += 1;
    else await slot(lane, signal);
    try {
      // It may have been aborted as the place was handed over.
      signal.throwIfAborted();
      return await run();
    } finally {
      const [next] = lane.waiting;
      if (next !== undefined) next();
      else if (--lane.running === 0) lanes.delete(key);
    }
  };
}

/** Resolves when one that ends hands over its place. */
function slot({ waiting }: Lane, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const begin = () => {
      waiting.delete(begin);
      signal.removeEventListener("abort", leave);
      resolve();
    };
    const leave = () => {
      waiting.delete(begin);
      reject(signal.reason);
    };
    signal.addEventListener("abort", leave, { once: true });
    waiting.add(begin);
  });
}
