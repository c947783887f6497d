/** Runs something in its turn, and gives what that gives. Throws the signal's reason where it is aborted while it waits. */
export type InTurn = <Result>(key: string, signal: AbortSignal, run: () => Promise<Result>) => Promise<Result>;

interface Lane {
  running: number;
  readonly waiting: Set<() => void>;
}

/** Creates turns: of each key at most `most` run at once, the others wait, first come, first served. What is idle is forgotten. */
export function createTurns(most: number): InTurn {
  const lanes = new Map<string, Lane>();
  return async (key, signal, run) => {
    signal.throwIfAborted();
    const lane = lanes.get(key) ?? { running: 0, waiting: new Set() };
    lanes.set(key, lane);
    if (lane.running < most) lane.running += 1;
    else await turn(lane, signal);
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

/** Resolves when one that ends hands its place over. */
function turn({ waiting }: Lane, signal: AbortSignal): Promise<void> {
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
