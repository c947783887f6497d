/** An event or a job in progress. */
export interface InFlightWork {
  readonly work: Promise<unknown>;
  readonly handler: string;
  /** As in its log lines: `eventId` or `jobId`, `origRequestId`, `causedBy`. */
  readonly ids: Readonly<Record<string, string>>;
}
