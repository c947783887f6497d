/** Options of `server.run`. */
export interface RunOptions {
  /** Purpose, up to 500 characters, logged as `run.started`. */
  readonly reason: string;
  /** Tenant of the run and of what follows from it. Default: none, a system run. */
  readonly tenantId?: string;
  /** User in the tenant. Default: none. */
  readonly userId?: string;
  /** Default: none. */
  readonly roles?: readonly string[];
  /**
   * Deduplicates the run: for 5 minutes, a run of the same tenant and user with this ID only
   * returns the first result. 1 to 128 characters of `A-Z a-z 0-9 . _ : = + / @ -`. Default:
   * generated.
   */
  readonly requestId?: string;
}
