/** Calls `run` once its key has a free slot. Rejects if the signal aborts while the call waits. */
type KeyedLimiter = <Result>(
  key: string,
  signal: AbortSignal,
  run: () => Promise<Result>,
) => Promise<Result>;

interface Lane {
  running: number;
  readonly waiting: Set<() => void>;
}

/** Creates a limiter that runs up to `most` calls per key at a time, in order of arrival. */
export function createKeyedLimiter(most: number): KeyedLimiter {
  const lanes = new Map<string, Lane>();
  return async (key, signal, run) => {
    signal.throwIfAborted();
    const lane = lanes.get(key) ?? { running: 0, waiting: new Set() };
    lanes.set(key, lane);
    if (lane.running < most) lane.running += 1;
    else await slot(lane, signal);
    try {
      // The signal may have aborted while the slot was handed over.
      signal.throwIfAborted();
      return await run();
    } finally {
      const [next] = lane.waiting;
      if (next !== undefined) next();
      else if (--lane.running === 0) lanes.delete(key);
    }
  };
}

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
