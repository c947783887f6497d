/**
 * No attempt of a call got an answer. It is a `TypeError`, as `fetch` throws for a network error; `cause` is the last attempt's
 * own error, or a `TimeoutError`.
 *
 * @example
 * if (error instanceof FetchFailedError) show(`The server cannot be reached (${error.requestId})`);
 */
export class FetchFailedError extends TypeError {
  static override readonly name: string = "FetchFailedError";
  /** The `X-Request-ID` of all attempts: it leads to the server's log lines, if one of them arrived. */
  readonly requestId: string;
  /** How often the call was sent. */
  readonly attempts: number;

  constructor(
    request: Pick<Request, "method" | "url" | "headers">,
    attempts: number,
    cause: unknown,
  ) {
    const requestId = String(request.headers.get("x-request-id"));
    const { origin, pathname } = new URL(request.url); // a query may have secrets
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
