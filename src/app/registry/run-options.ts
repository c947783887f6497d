/** Options of `server.run`. */
export interface RunOptions {
  /** Purpose of the run, up to 500 characters, logged as `run.started`. */
  readonly reason: string;
  /**
   * Tenant whose rows the run reaches, and which owns everything that follows from the run.
   * Default: no tenant, and the run is a system run.
   */
  readonly tenantId?: string;
  /** User that acts in the tenant. Default: no user. */
  readonly userId?: string;
  /** Roles of the user. Default: none. */
  readonly roles?: readonly string[];
  /**
   * Deduplicates the run: for 5 minutes, another run of the same tenant and user with this ID does
   * nothing and returns the result of the first. 1 to 128 characters of
   * `A-Z a-z 0-9 . _ : = + / @ -`. Default: a generated ID, so that runs are not deduplicated.
   */
  readonly requestId?: string;
}
