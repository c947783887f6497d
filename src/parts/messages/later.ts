import { derivedId } from "../once/derived-id.ts";
import { type OutboxRow, shards, timeText } from "./outbox-store.ts";

export interface Later {
  readonly delaySeconds?: number | undefined;
  readonly at?: Date | undefined;
}

const yearMs = 365 * 24 * 3_600_000;

/**
 * Returns when a job is due, in epoch milliseconds. @throws TypeError for an invalid time, and if
 * both options are set; RangeError for a time more than a year ahead.
 */
export function dueMsOf({ delaySeconds, at }: Later, nowMs: number): number {
  if (delaySeconds !== undefined && at !== undefined) {
    throw new TypeError("ctx.enqueue: `delaySeconds` and `at` both say when; give one of them");
  }
  const isDelay = delaySeconds !== undefined;
  if (isDelay && !(typeof delaySeconds === "number" && delaySeconds >= 0)) {
    throw new TypeError(`ctx.enqueue: delaySeconds ${String(delaySeconds)} is not a number from 0`);
  }
  if (!isDelay && !(at instanceof Date && Number.isFinite(at.getTime()))) {
    throw new TypeError("ctx.enqueue: `at` is not a valid Date");
  }
  const dueMs = Math.max(
    nowMs,
    isDelay ? Math.ceil(nowMs + delaySeconds * 1000) : (at as Date).getTime(),
  ); // safe: `at` is a valid Date if there is no delay
  if (dueMs - nowMs > yearMs)
    throw new RangeError("ctx.enqueue: the job is due in more than a year; enqueue it later");
  return dueMs;
}

/** A UUID of version 8 that starts with the time, so that a job's row can be found by its ID. */
export function dueId(dueMs: number, ...parts: readonly (string | number)[]): string {
  const time = dueMs.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}${derivedId(dueMs, ...parts).slice(13)}`;
}

export interface WaitingJob {
  readonly jobId: string;
  readonly name: string;
  readonly tenantId: string | undefined;
  readonly group: string;
  readonly deduplicationId: string;
  readonly text: string;
}

/** Row of a job that is due at the time in its ID. */
export function dueRow(job: WaitingJob): OutboxRow {
  return rowAt(duePlace(job.jobId) as DuePlace, job); // safe: `dueId` created the ID
}

/** Row of a job that is due now, regardless of its ID. */
export function queuedRow(nowMs: number, job: WaitingJob): OutboxRow {
  return rowAt({ shard: dueShardOf(job.jobId), sort: `${timeText(nowMs)}#${job.jobId}` }, job);
}

/** The text can be split again, because neither hash contains a blank. */
function rowAt(
  place: DuePlace,
  { jobId, name, tenantId, group, deduplicationId, text }: WaitingJob,
): OutboxRow {
  return {
    ...place,
    eventId: jobId,
    type: name,
    tenantId,
    text: `${deduplicationId} ${group} ${text}`,
  };
}

/** Returns `undefined` for a row without a job. */
export function waitingJob({
  text,
  unreadable,
}: OutboxRow): Pick<WaitingJob, "group" | "deduplicationId" | "text"> | undefined {
  const [, deduplicationId, group, message] =
    /^([\w-]{1,128}) ([\w-]{1,128}) (.+)$/s.exec(text) ?? [];
  if (
    unreadable !== undefined ||
    deduplicationId === undefined ||
    group === undefined ||
    message === undefined
  )
    return undefined;
  return { deduplicationId, group, text: message };
}

export type DuePlace = Pick<OutboxRow, "shard" | "sort">;

/** Key of the row of a job that is due later; `undefined` for an invalid ID. */
export function duePlace(jobId: unknown): DuePlace | undefined {
  if (
    typeof jobId !== "string" ||
    !/^[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/.test(jobId)
  )
    return undefined;
  const time = Number.parseInt(jobId.slice(0, 8) + jobId.slice(9, 13), 16);
  return { shard: dueShardOf(jobId), sort: `${timeText(time)}#${jobId}` };
}

function dueShardOf(jobId: string): string {
  return `due#${Number.parseInt(jobId.slice(-8), 16) % shards}`;
}
