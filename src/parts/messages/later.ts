import { derivedId } from "../once/derived-id.ts";
import { type OutboxRow, shards, timeText } from "./outbox.ts";

/** When a job is to be sent: after so many seconds, or at a time. */
export interface Later {
  readonly delaySeconds?: number | undefined;
  readonly at?: Date | undefined;
}

/** The longest delay, in milliseconds: a year. */
const mostMs = 365 * 24 * 3_600_000;

/**
 * When a job is due, in milliseconds since the epoch; `undefined` where it is to be sent at once. A time that has passed is
 * due now.
 *
 * @throws TypeError for what is no time, and for two of them; RangeError for one that is more than a year ahead.
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
  ); // safe: one of them is there
  if (dueMs - nowMs > mostMs)
    throw new RangeError("ctx.enqueue: the job is due in more than a year; enqueue it later");
  return dueMs;
}

/** The ID of a job that is due at `dueMs`: a UUID of version 8 that begins with the time, so that it says where the row is. */
export function dueId(dueMs: number, ...parts: readonly (string | number)[]): string {
  const time = dueMs.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}${derivedId(dueMs, ...parts).slice(13)}`;
}

/** A job as it waits until it is due: how it is queued stands before it. */
export interface WaitingJob {
  readonly jobId: string;
  readonly name: string;
  readonly tenantId: string | undefined;
  readonly group: string;
  readonly deduplicationId: string;
  /** The job as it goes over the wire. */
  readonly text: string;
}

/** The row of a job that is due at the time that its ID says. */
export function dueRow(job: WaitingJob): OutboxRow {
  return rowAt(duePlace(job.jobId) as DuePlace, job); // safe: the ID was made above
}

/** The row of a job that is due at once, whatever its ID. */
export function queuedRow(nowMs: number, job: WaitingJob): OutboxRow {
  return rowAt({ shard: dueShardOf(job.jobId), sort: `${timeText(nowMs)}#${job.jobId}` }, job);
}

/** Both hashes are without blanks. */
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

/** What a row says of its job; `undefined` where it is none. */
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

/** Where a job waits. */
export type DuePlace = Pick<OutboxRow, "shard" | "sort">;

/** Where a job waits that is due later, by its ID; `undefined` for what is no ID. */
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
  return dueShard(Number.parseInt(jobId.slice(-8), 16) % shards);
}

/** Apart from the shards of events: there rows are sent as soon as they are there. */
export function dueShard(number: number): string {
  return `due#${number}`;
}
