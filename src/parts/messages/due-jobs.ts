import type { Logger } from "../../base/log/logger.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Clock } from "../../base/process/clock.ts";
import { inPool } from "../../base/process/pool.ts";
import type { Claims } from "../once/claims.ts";
import { derivedId } from "../once/derived-id.ts";
import { block, isBlocked } from "./blocked-groups.ts";
import { deliveryJob } from "./delivery.ts";
import { type EqualJobStore, mergedWith, unmark } from "./equal-jobs.ts";
import { isMarked, type JobQueues, sendJob } from "./job-route.ts";
import {
  nothing,
  type OutboxRow,
  type OutboxStore,
  type Sweeping,
  type SweepReports,
  type SweepStops,
  type Swept,
  shards,
  sum,
  sweepShards,
  timeText,
  type WorkedPage,
} from "./outbox-store.ts";
import { tenantsInTurn } from "./tenants-in-turn.ts";

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

export function dueRow(job: WaitingJob): OutboxRow {
  return rowAt(duePlace(job.jobId) as DuePlace, job); // safe: `dueId` created the ID
}

/**
 * Row of a job that is due now, regardless of its ID. Jobs of one group are in one shard, in the
 * order of their times and ordinals, which is the order in which they are sent.
 */
export function queuedRow(nowMs: number, ordinal: number, job: WaitingJob): OutboxRow {
  const shard = dueShardOf(derivedId("group", job.group));
  const place = `${timeText(nowMs)}#${String(ordinal).padStart(4, "0")}#${job.jobId}`;
  return rowAt({ shard, sort: place }, job);
}

/** The text can be split again, because neither hash contains a blank. */
function rowAt(
  place: DuePlace,
  { jobId: eventId, name: type, tenantId, group, deduplicationId, text }: WaitingJob,
): OutboxRow {
  return { ...place, eventId, type, tenantId, text: `${deduplicationId} ${group} ${text}` };
}

/** Returns `undefined` for a row without a job. */
export function waitingJob({
  text,
  unreadable,
}: OutboxRow): Pick<WaitingJob, "group" | "deduplicationId" | "text"> | undefined {
  const found = /^(?<deduplicationId>[\w-]{1,128}) (?<group>[\w-]{1,128}) (?<text>.+)$/s.exec(
    text,
  )?.groups;
  if (unreadable !== undefined || found === undefined) return undefined;
  return { ...found } as ReturnType<typeof waitingJob>; // safe: each group has matched
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

export interface DueStore {
  /** Marks a row, so that it cannot be taken back. Returns `false` if it no longer exists. */
  begin(place: DuePlace): Promise<boolean>;
  /** Deletes a tenant's row. Returns `false` if the row does not exist or is being sent. */
  takeBack(place: DuePlace, tenantId: string | undefined): Promise<boolean>;
}

export interface DueJobsOptions {
  readonly store: OutboxStore;
  readonly due: Pick<DueStore, "begin">;
  readonly jobs: () => Promise<JobQueues>;
  readonly equalJobs: () => Promise<EqualJobStore>;
  readonly claims: Claims;
  readonly stops: SweepStops;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: Metrics | undefined;
}

/** Without `due`, jobs cannot be taken back. */
type SendingOptions = Omit<DueJobsOptions, "due"> & Partial<Pick<DueJobsOptions, "due">>;

const atOnce = 20;
const maxReasonLength = 500;

/** Sends the due jobs of every shard that no other sweep has claimed. @throws errors of `store`. */
export function sweepDueJobs(
  options: DueJobsOptions,
  signal: AbortSignal | undefined,
  reports: SweepReports,
): Promise<Swept> {
  const work: Sweeping["work"] = (rows, blocked) => sendAll(options, rows, blocked, signal);
  return sweepShards({ ...options, ...reports, signal, work }, "due", options.clock.now() + 1);
}

/** Sends committed jobs that cannot be taken back. Never throws: the sweep sends the rest. */
export async function sendCommitted(
  options: DueJobsOptions,
  rows: readonly OutboxRow[],
): Promise<void> {
  const { due: _due, ...sending } = options;
  await sendAll(sending, rows);
}

/**
 * Sends the jobs of a group one after another, in the order of their rows, and groups concurrently.
 * Tenants take turns.
 *
 * @param blocked - ordered groups with an earlier job that stays.
 */
async function sendAll(
  options: SendingOptions,
  rows: readonly OutboxRow[],
  blocked = new Set<string>(),
  signal?: AbortSignal,
): Promise<WorkedPage> {
  let swept = nothing;
  let hasAnswers = false;
  const failed: string[] = [];
  let firstReason: string | undefined;
  const attempt = async (row: OutboxRow): Promise<Swept> => {
    if (signal?.aborted) return { ...nothing, left: 1 };
    try {
      const refusal = await sendOne(options, row);
      hasAnswers = true;
      return refusal === undefined
        ? { ...nothing, dispatched: 1 }
        : await setAside(options, row, refusal);
    } catch (error) {
      failed.push(`${row.type} ${row.eventId}`);
      firstReason ??= String(error);
      return { ...nothing, left: 1 };
    }
  };
  const attemptGroup = async (group: readonly OutboxRow[]): Promise<void> => {
    for (const [at, row] of group.entries()) {
      const one = await attempt(row);
      swept = sum(swept, one);
      // A job that stays must not be overtaken by a later one of its group.
      if (one.left > 0) {
        if (isOrdered(row)) block(blocked, groupOf(row));
        swept = sum(swept, { ...nothing, left: group.length - at - 1 });
        return;
      }
    }
  };
  const now = rows.filter((row) => !isOrdered(row) || !isBlocked(blocked, groupOf(row)));
  swept = { ...nothing, left: rows.length - now.length };
  const byGroup = [...Map.groupBy(now, groupOf).values()];
  const groups = tenantsInTurn(byGroup, ([row]) => row?.tenantId);
  await inPool(groups, atOnce, attemptGroup);
  if (failed.length > 0)
    options.log.warn("job.dispatch_failed", { jobs: failed, reason: firstReason });
  return { swept, hasAnswers, isLeftOut: now.length === 0 };
}

function groupOf(row: OutboxRow): string {
  return waitingJob(row)?.group ?? row.eventId;
}

function isOrdered(row: OutboxRow): boolean {
  const waiting = waitingJob(row);
  return waiting !== undefined && waiting.group !== waiting.deduplicationId;
}

/**
 * Sends one job, unless it merges with an equal one. If a row is sent twice, both runs have the same
 * claim. Returns why the queue will never take it, if so. @throws any other failure, and without
 * `due` that refusal: only a sweep, which has claimed the shard, may set rows aside.
 */
async function sendOne(options: SendingOptions, row: OutboxRow): Promise<string | undefined> {
  const { store, due, jobs } = options;
  const waiting = waitingJob(row);
  if (waiting === undefined)
    return "the row is not a job: it has no message, or no information on how it is queued";
  // A job that was taken back counts as sent, so that the sweep goes on.
  if (due !== undefined && !(await due.begin(row))) return undefined;
  const job = { ...waiting, name: row.type, tenantId: row.tenantId };
  const queues = await jobs();
  const enqueuedMs = enqueuedMsOf(row);
  const mayMerge = enqueuedMs !== undefined && isMarked(queues.fairMode, job);
  if (!mayMerge || !(await merges(options, row, { ...job, enqueuedMs }))) {
    try {
      await sendJob(queues, job);
    } catch (error) {
      if (!queues.jobs.isFinal(error)) throw error;
      const unsent = { ...job, jobId: row.eventId };
      // A mark that stays counts for five minutes only.
      const unmarking = async () => unmark(await options.equalJobs(), unsent);
      await (mayMerge && unmarking().catch(() => undefined));
      if (due === undefined) throw error;
      return String(error).slice(0, maxReasonLength);
    }
  }
  await store.remove(row);
  return undefined;
}

/** When the job of a {@link queuedRow} was enqueued. A job that is due later never merges. */
function enqueuedMsOf({ sort }: OutboxRow): number | undefined {
  const [time, _ordinal, jobId] = sort.split("#");
  return jobId === undefined ? undefined : Number(time);
}

async function merges(
  { equalJobs, log }: SendingOptions,
  { eventId: jobId, type: job }: OutboxRow,
  given: Omit<Parameters<typeof mergedWith>[1], "jobId">,
): Promise<boolean> {
  const into = await mergedWith(await equalJobs(), { ...given, jobId });
  if (into !== undefined) log.info("job.merged", { job, mergedId: jobId, into });
  return into !== undefined;
}

async function setAside(
  { store, clock, log, metrics }: SendingOptions,
  row: OutboxRow,
  reason: string,
): Promise<Swept> {
  const told = { job: row.type, jobId: row.eventId };
  try {
    if (!(await store.setAside(row, reason, clock.now()))) return nothing;
  } catch (error) {
    log.warn("job.set_aside_failed", { ...told, refusal: reason, reason: String(error) });
    return { ...nothing, left: 1 };
  }
  metrics?.record("keelson.dead_letters", 1, {
    "keelson.kind": row.type === deliveryJob ? "delivery" : "job",
  });
  log.error("job.set_aside", { ...told, reason });
  return { ...nothing, setAside: 1 };
}
