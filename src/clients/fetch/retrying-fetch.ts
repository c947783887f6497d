import { FetchFailedError } from "./fetch-failed-error.ts";
import { identifiedRequest } from "./identified-request.ts";
import { pauseAfter, retryAfterMs, wait } from "./pause.ts";
import { isRetried, mayBeRetried } from "./retry-rule.ts";

/** Options of {@link retryingFetch}. */
export interface RetryingFetchOptions {
  /** What sends each attempt. Default: the `fetch` of the page or of Node, looked up with each attempt. */
  readonly fetch?: typeof globalThis.fetch;
  /** How often a call is sent at most, the first time included. Default 5; with 1 nothing is retried. */
  readonly attempts?: number;
  /** How long an attempt may take until its answer begins, in milliseconds. Default 30,000: gateways give up after 29 s. */
  readonly attemptMs?: number;
  /**
   * How long a call may take in all until its answer begins, in milliseconds. Default 60,000. Keep it below the 300 s for which a
   * server remembers a key.
   */
  readonly totalMs?: number;
  /** Is told of each retry before its pause, such as for a log. */
  readonly onRetry?: (retry: Retry) => void;
}

/** A retry that is about to be waited for. */
export interface Retry {
  /** Which attempt failed: 1 is the first. */
  readonly attempt: number;
  /** The pause until the next one, in milliseconds. */
  readonly waitMs: number;
  /** The `X-Request-ID` of all attempts of the call. */
  readonly requestId: string;
  /** The status of the answer, where there was one. */
  readonly status?: number;
  /** The code in its body, such as `overloaded`, where it has one. */
  readonly code?: string;
  /** Why there was no answer. */
  readonly error?: unknown;
}

/** How an attempt ended. */
type Outcome =
  | { readonly response: Response; readonly code?: string | undefined; readonly retried: boolean }
  | { readonly response?: never; readonly error: unknown; readonly retried: boolean };

/** What a test replaces. */
export interface Machine {
  readonly now: () => number;
  readonly random: () => number;
  readonly wait: typeof wait;
}

/**
 * Creates a `fetch` that retries what is safe to retry, for `openapi-fetch` or any client that takes a `fetch`. A call has one
 * `X-Request-ID`, a write one `Idempotency-Key`, and all attempts send the same, so that keelson runs it once
 * (specification 6.6). Retried are network errors and answers that pass, such as 503 `overloaded`; see `docs/client.md`.
 *
 * What it returns throws the reason of the call's `signal` as soon as that aborts, and `FetchFailedError` where no attempt got an
 * answer.
 *
 * @example
 * const client = createClient<paths>({ baseUrl: "https://api.example.com", fetch: retryingFetch() });
 */
export function retryingFetch(options: RetryingFetchOptions = {}): typeof globalThis.fetch {
  return createRetryingFetch(options, { now: () => Date.now(), random: () => Math.random(), wait });
}

/** The same, with the time and the chance of a test. */
export function createRetryingFetch(
  options: RetryingFetchOptions,
  machine: Machine,
): typeof globalThis.fetch {
  const { attempts = 5, attemptMs = 30_000, totalMs = 60_000, onRetry } = options;
  return async function retryingFetch(input, init) {
    const { request, repeatable, more } = identifiedRequest(input, init);
    const requestId = String(request.headers.get("x-request-id"));
    const most = repeatable ? attempts : 1;
    const untilMs = machine.now() + totalMs;
    for (let attempt = 1; ; attempt++) {
      const isLast = !(attempt < most); // of what is no number, the first
      const limitMs = Math.min(attemptMs, untilMs - machine.now());
      const send = options.fetch ?? globalThis.fetch;
      const outcome = await sendOnce(send, isLast ? request : request.clone(), {
        more,
        limitMs,
        isLast,
      });
      const { response, retried } = outcome;
      request.signal.throwIfAborted();
      if (response !== undefined && !retried) return response;
      if (response === undefined && !retried) throw outcome.error;
      const askedMs = response === undefined ? 0 : retryAfterMs(response.headers, machine.now());
      const waitMs = pauseAfter(attempt, askedMs, machine.random);
      // A server that wants more time than there is gets no request before: its answer is the caller's.
      if (isLast || machine.now() + waitMs >= untilMs) {
        if (response !== undefined) return response;
        throw new FetchFailedError(request, attempt, outcome.error);
      }
      onRetry?.({ attempt, waitMs, requestId, ...reasonOf(outcome) });
      response?.body?.cancel().catch(() => {}); // its connection is free for the next attempt
      await machine.wait(waitMs, request.signal);
    }
  };
}

/** Sends an attempt, and waits for the beginning of its answer; for the whole body of one whose code decides. */
async function sendOnce(
  send: typeof globalThis.fetch,
  request: Request,
  {
    more,
    limitMs,
    isLast,
  }: { readonly more: RequestInit; readonly limitMs: number; readonly isLast: boolean },
): Promise<Outcome> {
  const late = new AbortController();
  const timer = setTimeout(
    () => late.abort(new DOMException(`no answer within ${limitMs} ms`, "TimeoutError")),
    limitMs,
  );
  try {
    const response = await send(request, {
      ...more,
      signal: AbortSignal.any([request.signal, late.signal]),
    });
    if (isLast || !mayBeRetried(response.status)) return { response, retried: false };
    const code = await codeOf(response);
    return {
      response,
      code,
      retried: isRetried(response.status, code, response.headers.get("retry-after")),
    };
  } catch (error) {
    return { error, retried: error instanceof TypeError || late.signal.aborted };
  } finally {
    clearTimeout(timer);
  }
}

/** The code in an answer's body, which stays readable. */
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
    return undefined; // a gateway's answer may call anything JSON
  }
}

function reasonOf(outcome: Outcome): Pick<Retry, "status" | "code" | "error"> {
  if (outcome.response === undefined) return { error: outcome.error };
  const { status } = outcome.response;
  return outcome.code === undefined ? { status } : { status, code: outcome.code };
}
