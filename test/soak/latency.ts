/** Times of the requests of one minute. */
export interface Latencies {
  record(ms: number): void;
  /** Returns a line with the number of requests and their times, and forgets them. */
  take(): string;
  /** Times of the whole run, in milliseconds. */
  total(): string;
}

export function createLatencies(): Latencies {
  const whole: number[] = [];
  let minute: number[] = [];
  return {
    record: (ms) => void minute.push(ms),
    take: () => {
      const line = lineOf(minute);
      whole.push(...minute);
      minute = [];
      return line;
    },
    total: () => lineOf([...whole, ...minute]),
  };
}

function lineOf(times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  const quantile = (share: number) => {
    const ms = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
    return ms === undefined ? "-" : `${ms.toFixed(0)} ms`;
  };
  return `${sorted.length} requests, p50 ${quantile(0.5)}, p99 ${quantile(0.99)}, p99.9 ${quantile(0.999)}`;
}
