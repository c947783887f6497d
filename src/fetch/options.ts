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
