/** Options of `server.run`. */
export interface RunOptions {
  /** What the run is for, in at most 500 characters; logged as `run.started`. */
  readonly reason: string;
  /** Whose rows the run reaches, and whom what follows from it belongs to. Default: nobody's, the run is the system's. */
  readonly tenantId?: string;
  /** Who acts in the tenant. Default: nobody. */
  readonly userId?: string;
  /** Default: none. */
  readonly roles?: readonly string[];
  /**
   * Deduplicates the run: for 5 minutes another run of the same tenant and user with this ID gets the result of the first,
   * and does nothing. 1 to 128 characters of `A-Z a-z 0-9 . _ : = + / @ -`. Default: a generated ID, which deduplicates nothing.
   */
  readonly requestId?: string;
}
