export interface InFlightWork {
  readonly work: Promise<unknown>;
  readonly handler: string;
  /** IDs in the log lines of the work: `eventId` or `jobId`, `origRequestId`, `causedBy`. */
  readonly ids: Readonly<Record<string, string>>;
}
