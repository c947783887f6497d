import type { Logger } from "../../base/log/logger.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { Claims } from "../once/claims.ts";
import { deliveryJob } from "./delivery.ts";
import { type DuePlace, waitingJob } from "./later.ts";
import type { MessageQueue } from "./message-queue.ts";
import {
  nothing,
  type OutboxRow,
  type OutboxStore,
  type Sweeping,
  type SweepStops,
  type Swept,
  sum,
  sweepShards,
  type WorkedPage,
} from "./outbox-store.ts";

export interface DueStore {
  /** Marks a row, so that it cannot be taken back. Returns `false` if it is gone. */
  begin(place: DuePlace): Promise<boolean>;
  /** Deletes a tenant's row. Returns `false` if the row does not exist or is being sent. */
  takeBack(place: DuePlace, tenantId: string | undefined): Promise<boolean>;
}

export interface DueJobsOptions {
  readonly store: OutboxStore;
  readonly due: Pick<DueStore, "begin">;
  readonly jobs: () => Promise<Pick<MessageQueue, "send" | "isFinal">>;
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
  seen: Sweeping["seen"],
): Promise<Swept> {
  const work = (rows: readonly OutboxRow[]) => sendAll(options, rows);
  return sweepShards({ ...options, signal, seen, work }, "due", options.clock.now() + 1);
}

/** Sends committed jobs that cannot be taken back. Never throws: the sweep sends what is left. */
export async function sendCommitted(
  options: DueJobsOptions,
  rows: readonly OutboxRow[],
): Promise<void> {
  const { due: _due, ...sending } = options;
  await sendAll(sending, rows);
}

async function sendAll(options: SendingOptions, rows: readonly OutboxRow[]): Promise<WorkedPage> {
  let swept = nothing;
  let hasAnswers = false;
  const failed: string[] = [];
  let firstReason: string | undefined;
  const attempt = async (row: OutboxRow): Promise<Swept> => {
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
  for (let start = 0; start < rows.length; start += atOnce) {
    for (const one of await Promise.all(rows.slice(start, start + atOnce).map(attempt)))
      swept = sum(swept, one);
  }
  if (failed.length > 0)
    options.log.warn("job.dispatch_failed", { jobs: failed, reason: firstReason });
  return { swept, hasAnswers };
}

/**
 * Sends one job. If a row is sent twice, both messages have the same deduplication ID, and both
 * runs the same claim. Returns why the queue will never take it, if so. @throws any other failure,
 * and without `due` that refusal: only a sweep, which has claimed the shard, may set rows aside.
 */
async function sendOne(
  { store, due, jobs }: SendingOptions,
  row: OutboxRow,
): Promise<string | undefined> {
  const waiting = waitingJob(row);
  if (waiting === undefined) return "the row is no job: it has no message, or not how it is queued";
  // A job that was taken back counts as sent, so that the sweep goes on.
  if (due !== undefined && !(await due.begin(row))) return undefined;
  const { text, ...queued } = waiting;
  const queue = await jobs();
  try {
    await queue.send(text, queued);
  } catch (error) {
    if (due === undefined || !queue.isFinal(error)) throw error;
    return String(error).slice(0, maxReasonLength);
  }
  await store.remove(row);
  return undefined;
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
