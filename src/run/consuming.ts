/** An event or a job that is worked on. */
export interface Consuming {
  readonly work: Promise<unknown>;
  readonly handler: string;
  /** As its lines have them: `eventId` or `jobId`, `origRequestId`, `causedBy`. */
  readonly ids: Readonly<Record<string, string>>;
}
