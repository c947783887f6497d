export interface ClaimSchedule {
  /** Resolves after `ms`, or as soon as one of the signals aborts. */
  wait(ms: number, stop: readonly AbortSignal[]): Promise<void>;
  /** Calls `task`, which never rejects, every `ms` until the returned function is called. */
  repeat(ms: number, task: () => Promise<void>): () => void;
  /** Returns a number from 0 to 1. */
  random(): number;
}

export const processSchedule: ClaimSchedule = {
  wait: (ms, stop) =>
    new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        for (const signal of stop) signal.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      for (const signal of stop) signal.addEventListener("abort", end);
    }),
  repeat: (ms, task) => {
    const timer = setInterval(task, ms);
    timer.unref();
    return () => clearInterval(timer);
  },
  random: Math.random,
};
