import { identifiedRequest } from "./identified-request.ts";
import {
  isRetried,
  longestTimerMs,
  mayBeRetried,
  pauseAfter,
  rateLimitMs,
  retryAfterMs,
  wait,
} from "./retry-rule.ts";

/** Options of {@link retryingFetch}. */
export interface RetryingFetchOptions {
  /** Sends an attempt. Default: the current global `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
  /** Maximum number of attempts. Default 5; 1 disables retries. */
  readonly attempts?: number;
  /**
   * Timeout until an attempt's response starts, in milliseconds. Default 30,000, because gateways
   * give up after 29 s.
   */
  readonly attemptMs?: number;
  /**
   * Timeout until the call's response starts, in milliseconds. Default 60,000. Keep it below 300 s,
   * after which a server forgets an idempotency key.
   */
  readonly totalMs?: number;
  /** Called before the pause of each retry. */
  readonly onRetry?: (retry: Retry) => void;
}

/** A failed attempt that is about to be repeated. */
export interface Retry {
  /** Number of the failed attempt, from 1. */
  readonly attempt: number;
  /** Pause before the next attempt, in milliseconds. */
  readonly waitMs: number;
  /** `X-Request-ID` of all attempts. */
  readonly requestId: string;
  /** Status of the response. Absent without a response. */
  readonly status?: number;
  /** Code in the response body, such as `overloaded`. */
  readonly code?: string;
  /** Error of an attempt without a response. */
  readonly error?: unknown;
}

type Outcome =
  | {
      readonly response: Response;
      readonly error?: never;
      readonly code?: string | undefined;
      readonly retried: boolean;
    }
  | { readonly response?: never; readonly error: unknown; readonly retried: boolean };

/**
 * Creates a `fetch` that retries calls if this is safe, for `openapi-fetch` or any client that
 * takes a `fetch`. All attempts of a call have the same `X-Request-ID`, and of a write also the same
 * `Idempotency-Key`, so keelson runs the write once (specification 6.6). Retries network errors and
 * temporary failures, such as 503 `overloaded`; see `docs/client.md`.
 *
 * The returned function throws the reason of the call's `signal` as soon as the signal aborts, and
 * `FetchFailedError` if no attempt gets a response, or if the machine sleeps between two attempts for
 * longer than the call's time.
 *
 * @example
 * const client = createClient<paths>({ baseUrl: "https://api.example.com", fetch: retryingFetch()
 * });
 */
export function retryingFetch(options: RetryingFetchOptions = {}): typeof globalThis.fetch {
  return createRetryingFetch(options, { now: () => Date.now(), random: () => Math.random(), wait });
}

export function createRetryingFetch(
  options: RetryingFetchOptions,
  machine: {
    readonly now: () => number;
    readonly random: () => number;
    readonly wait: typeof wait;
  },
): typeof globalThis.fetch {
  const { attempts = 5, attemptMs = 30_000, totalMs = 60_000, onRetry } = options;
  return async function retryingFetch(input, init) {
    const { request, repeatable, more } = identifiedRequest(input, init);
    const requestId = String(request.headers.get("x-request-id"));
    const most = repeatable ? attempts : 1;
    const untilMs = machine.now() + totalMs;
    for (let attempt = 1; ; attempt++) {
      const isLast = !(attempt < most); // also true if `most` is NaN
      const limitMs = Math.min(attemptMs, untilMs - machine.now());
      const send = options.fetch ?? globalThis.fetch;
      const sent = isLast ? request : request.clone();
      const outcome = await sendOnce(send, sent, more, limitMs, isLast);
      const { response, error, retried } = outcome;
      request.signal.throwIfAborted();
      if (response !== undefined && !retried) return response;
      if (response === undefined && !retried) throw error;
      const askedMs = response === undefined ? 0 : askedOf(response, machine.now());
      const waitMs = pauseAfter(attempt, askedMs, machine.random);
      // If the pause would exceed the remaining time, the caller gets the response.
      if (isLast || machine.now() + waitMs >= untilMs) {
        if (response !== undefined) return response;
        throw new FetchFailedError(request, attempt, error);
      }
      onRetry?.({ attempt, waitMs, requestId, ...reasonOf(outcome) });
      response?.body?.cancel().catch(() => {}); // frees the connection for the next attempt
      await machine.wait(waitMs, request.signal);
      // After a pause in which the machine slept, the server may have forgotten the key.
      if (machine.now() >= untilMs)
        throw new FetchFailedError(request, attempt, error ?? lateError(totalMs));
    }
  };
}

/** Returns the pause that a response asks for, in milliseconds. */
function askedOf({ status, headers }: Response, nowMs: number): number {
  return Math.max(retryAfterMs(headers, nowMs), status === 429 ? rateLimitMs(headers) : 0);
}

/**
 * Thrown if no attempt of a call gets a response, or if the machine sleeps between two attempts
 * until the call's total time has passed. It is a `TypeError`, like network errors of `fetch`. Its `cause` is
 * the last attempt's error, or a `TimeoutError`.
 *
 * @example
 * if (error instanceof FetchFailedError) show(`The server cannot be reached (${error.requestId})`);
 */
export class FetchFailedError extends TypeError {
  static override readonly name: string = "FetchFailedError";
  /** `X-Request-ID` of all attempts, which the server's log lines contain. */
  readonly requestId: string;
  readonly attempts: number;

  constructor(
    request: Pick<Request, "method" | "url" | "headers">,
    attempts: number,
    cause: unknown,
  ) {
    const requestId = String(request.headers.get("x-request-id"));
    const { origin, pathname } = new URL(request.url); // the query may contain secrets
    const times = attempts === 1 ? "1 attempt" : `${attempts} attempts`;
    super(
      `${request.method} ${origin}${pathname} got no answer in ${times} (X-Request-ID ${requestId})`,
      { cause },
    );
    this.name = "FetchFailedError";
    this.requestId = requestId;
    this.attempts = attempts;
  }
}

/** Waits for the response to start, or for its whole body if its code decides about a retry. */
async function sendOnce(
  send: typeof globalThis.fetch,
  request: Request,
  more: RequestInit,
  limitMs: number,
  isLast: boolean,
): Promise<Outcome> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(lateError(limitMs)), Math.min(limitMs, longestTimerMs));
  try {
    const signal = AbortSignal.any([request.signal, late.signal]);
    const response = await send(request, { ...more, signal });
    const { status, headers } = response;
    if (isLast || !mayBeRetried(status)) return { response, retried: false };
    const code = await codeOf(response);
    const asked = headers.get("retry-after") ?? (rateLimitMs(headers) > 0 ? "" : null);
    return { response, code, retried: isRetried(status, code, asked) };
  } catch (error) {
    return { error, retried: error instanceof TypeError || late.signal.aborted };
  } finally {
    clearTimeout(timer);
  }
}

function lateError(limitMs: number): DOMException {
  return new DOMException(`no answer within ${limitMs} ms`, "TimeoutError");
}

async function codeOf(response: Response): Promise<string | undefined> {
  if (!/^application\/(problem\+)?json\b/.test(response.headers.get("content-type") ?? ""))
    return undefined;
  const text = await response.clone().text();
  try {
    const body: unknown = JSON.parse(text);
    const code =
      typeof body === "object" && body !== null && "error" in body ? body.error : undefined;
    return typeof code === "string" ? code : undefined;
  } catch {
    return undefined; // a gateway may label any body as JSON
  }
}

function reasonOf(outcome: Outcome): Pick<Retry, "status" | "code" | "error"> {
  if (outcome.response === undefined) return { error: outcome.error };
  const { status } = outcome.response;
  return outcome.code === undefined ? { status } : { status, code: outcome.code };
}
