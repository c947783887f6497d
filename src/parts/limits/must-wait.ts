/** Thrown before a run has had any effect: its message waits, which uses no attempt. */
export class MustWaitError extends Error {
  /** Limit that is reached: `perTenant`, `total`, `webhook target` or `webhook tenant`. */
  readonly limit: string;

  constructor(limit: string) {
    super(`the limit ${limit} is reached`);
    this.name = "MustWaitError";
    this.limit = limit;
  }
}
