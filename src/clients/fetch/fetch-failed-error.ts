/**
 * Thrown if no attempt of a call gets a response. It is a `TypeError`, like network errors of
 * `fetch`. Its `cause` is the last attempt's error, or a `TimeoutError`.
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
