export interface InFlightWork {
  readonly work: Promise<unknown>;
  readonly handler: string;
  /** IDs from its log lines: `eventId` or `jobId`, `origRequestId`, `causedBy`. */
  readonly ids: Readonly<Record<string, string>>;
}
