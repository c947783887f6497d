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
  /** Deletes the mark of a job. A mark of another job stays. */
  unmark(key: ClaimKey, jobId: string): Promise<void>;
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
 * in the outbox, so the job is sent later. If the queue permanently refuses the job, {@link unmark}
 * deletes the mark before the job is set aside, so that no later one merges with it.
 *
 * @returns the ID of the job that it merges with; `undefined` if it is sent.
 */
export async function mergedWith(
  store: EqualJobStore,
  job: EqualJob & Keyed,
): Promise<string | undefined> {
  const { jobId, enqueuedMs } = job;
  const mark = await store.mark(keyOf(job), { jobId, enqueuedMs });
  const isNear = mark !== undefined && Math.abs(mark.enqueuedMs - enqueuedMs) < mergeMs;
  return isNear ? mark.jobId : undefined;
}

/** Deletes the mark of a job that is not sent. */
export function unmark(store: EqualJobStore, job: Pick<EqualJob, "jobId"> & Keyed): Promise<void> {
  return store.unmark(keyOf(job), job.jobId);
}

interface Keyed {
  readonly deduplicationId: string;
  readonly tenantId: string | undefined;
}

function keyOf({ deduplicationId, tenantId }: Keyed): ClaimKey {
  return claimKey(["equal-jobs"], deduplicationId, tenantId);
}
