import { type ClaimKey, claimKey } from "../once/claim.ts";

/** Time from the first of equal jobs in which others merge with it, in milliseconds. */
export const mergeMs = 5 * 60_000;
/** Time for which a mark is kept, in milliseconds: jobs may wait in the outbox as long. */
export const markKeptMs = 24 * 3_600_000;

/** Mark of the first of equal jobs. */
export interface EqualJob {
  readonly jobId: string;
  /** In epoch milliseconds. */
  readonly enqueuedMs: number;
}

export interface EqualJobStore {
  /**
   * Marks a job, unless another job has a mark of less than {@link mergeMs} before it, or a later
   * one. Returns that mark.
   */
  mark(key: ClaimKey, job: EqualJob): Promise<EqualJob | undefined>;
}

/**
 * Decides whether a committed job is sent, or merges with an equal one:
 *
 * | mark of the equal job | this job |
 * |---|---|
 * | none, or its own from an earlier attempt | is marked and sent |
 * | less than 5 minutes before or after it | merges |
 * | 5 minutes before it, or more | is marked and sent |
 * | 5 minutes after it, or more: this job waited in an outage | is sent |
 *
 * The mark follows the commit and precedes the send. A process that dies in between leaves the row
 * in the outbox, so the job is sent later, and no other job has merged with one that is never sent.
 *
 * @returns the ID of the job that it merges with; `undefined` if it is sent.
 */
export async function mergedWith(
  store: EqualJobStore,
  job: EqualJob & { readonly deduplicationId: string; readonly tenantId: string | undefined },
): Promise<string | undefined> {
  const { jobId, enqueuedMs, deduplicationId, tenantId } = job;
  const key = claimKey(["equal-jobs"], deduplicationId, tenantId);
  const mark = await store.mark(key, { jobId, enqueuedMs });
  const isNear = mark !== undefined && Math.abs(mark.enqueuedMs - enqueuedMs) < mergeMs;
  return isNear ? mark.jobId : undefined;
}
