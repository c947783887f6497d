/** Options of `server.run`. */
export interface RunOptions {
  /** Purpose of the run, up to 500 characters, logged as `run.started`. */
  readonly reason: string;
  /** Tenant of the run and of everything that it causes. Default: none, a system run. */
  readonly tenantId?: string;
  /** ID of a user of the tenant. Default: none. */
  readonly userId?: string;
  /** Roles of the user. Default: none. */
  readonly roles?: readonly string[];
  /**
   * ID that deduplicates the run: for 5 minutes, a run with the same ID, tenant and user does
   * nothing and returns the first result. 1 to 128 characters of `A-Z a-z 0-9 . _ : = + / @ -`.
   * Default: generated.
   */
  readonly requestId?: string;
}
