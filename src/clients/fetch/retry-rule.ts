import type { errorCodes } from "../../base/errors/error-codes.ts";

/** Codes of temporary failures, without `unknown_outcome`, which may hide completed work. */
const passing: ReadonlyMap<string, number> = new Map(
  Object.entries({
    request_in_progress: 409,
    too_many_requests: 429,
    config_unavailable: 503,
    isolation_unavailable: 503,
    overloaded: 503,
    timeout: 504,
  } satisfies Partial<typeof errorCodes>),
);

/** Statuses of a gateway whose server is unreachable or too slow. */
const ofGateways: readonly number[] = [429, 502, 503, 504];

/** Whether the code in a response's body decides if it is retried. */
export function mayBeRetried(status: number): boolean {
  return status === 409 || ofGateways.includes(status);
}

/**
 * | code of the body | retried |
 * |---|---|
 * | in {@link passing}, with its own status | yes |
 * | of the application | 429 and 503, if `Retry-After` is set |
 * | none: a gateway's response | 429, 502, 503, 504 |
 */
export function isRetried(
  status: number,
  code: string | undefined,
  retryAfter: string | null,
): boolean {
  if (code === undefined) return ofGateways.includes(status);
  if (passing.get(code) === status) return true;
  return retryAfter !== null && (status === 429 || status === 503);
}

/** Maximum jitter of the first pause. The maximum doubles with each attempt. */
const firstMs = 250;
const longestMs = 10_000;

/** Returns `Retry-After` plus exponential backoff with full jitter, in milliseconds. */
export function pauseAfter(attempt: number, retryAfterMs: number, random: () => number): number {
  return Math.round(retryAfterMs + random() * Math.min(longestMs, firstMs * 2 ** (attempt - 1)));
}

/**
 * Returns `Retry-After` in milliseconds, 0 if it is absent or invalid. A date is relative to the
 * response's `Date`, or to `nowMs` on a cross-origin page, which cannot read `Date`.
 */
export function retryAfterMs(headers: Pick<Headers, "get">, nowMs: number): number {
  const value = headers.get("retry-after")?.trim() ?? "";
  if (/^\d+$/.test(value)) return Number(value) * 1_000;
  const until = httpDate(value);
  if (until === undefined) return 0;
  return Math.max(0, until - (httpDate(headers.get("date") ?? "") ?? nowMs));
}

/**
 * Returns the longest `t` of the limits in `RateLimit` that admit no request (`r=0`), in
 * milliseconds, 0 without such a limit.
 */
export function rateLimitMs(headers: Pick<Headers, "get">): number {
  // A string without its end takes the rest: looking for the end of each would be quadratic.
  const field = (headers.get("ratelimit") ?? "").replace(/"(?:[^"\\]|\\.)*"?/g, "");
  const waits = field.split(",").map((limit) => {
    const parameters = limit.split(";").map((parameter) => parameter.trim());
    const seconds = parameters.find((parameter) => /^t=\d{1,9}$/.test(parameter))?.slice(2);
    return parameters.includes("r=0") ? Number(seconds ?? 0) : 0;
  });
  return Math.max(...waits) * 1_000;
}

/** Longest timer, in milliseconds. A longer one would fire immediately. */
export const longestTimerMs = 2 ** 31 - 1;

/** Waits. Rejects with the signal's reason as soon as the signal aborts. */
export function wait(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(
      () => {
        signal.removeEventListener("abort", abort);
        resolve();
      },
      Math.min(ms, longestTimerMs),
    );
    signal.addEventListener("abort", abort, { once: true });
  });
}

function httpDate(value: string): number | undefined {
  const ms = value.endsWith(" GMT") ? Date.parse(value) : Number.NaN; // `Date.parse` accepts almost anything
  return Number.isNaN(ms) ? undefined : ms;
}
