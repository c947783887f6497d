/** The longest random part of the first pause, in milliseconds; it doubles with each attempt. */
const firstMs = 250;
const longestMs = 10_000;

/** How long to wait after the attempt, in milliseconds: what the server asks for, and exponential backoff with full jitter. */
export function pauseAfter(attempt: number, retryAfterMs: number, random: () => number): number {
  return Math.round(retryAfterMs + random() * Math.min(longestMs, firstMs * 2 ** (attempt - 1)));
}

/**
 * What `Retry-After` asks for, in milliseconds; 0 where it cannot be read. Its date is compared with that of the answer, which is
 * by the same clock; a page of another origin may not read that, and has its own clock.
 */
export function retryAfterMs(headers: Pick<Headers, "get">, nowMs: number): number {
  const value = headers.get("retry-after")?.trim() ?? "";
  if (/^\d+$/.test(value)) return Number(value) * 1_000;
  const until = httpDate(value);
  if (until === undefined) return 0;
  return Math.max(0, until - (httpDate(headers.get("date") ?? "") ?? nowMs));
}

/** Waits so many milliseconds. Rejects with the signal's reason as soon as it aborts. */
export function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal.addEventListener("abort", abort, { once: true });
  });
}

function httpDate(value: string): number | undefined {
  const ms = value.endsWith(" GMT") ? Date.parse(value) : Number.NaN; // `Date.parse` reads almost anything
  return Number.isNaN(ms) ? undefined : ms;
}
