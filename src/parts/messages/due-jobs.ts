import type { Logger } from "../../base/log/logger.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { Claims } from "../once/claims.ts";
import { deliveryJob } from "./delivery.ts";
import { type DuePlace, dueShard, waitingJob } from "./later.ts";
import type { MessageQueue } from "./message-queue.ts";
import {
  type OutboxRow,
  type OutboxStore,
  type SweepStops,
  type Swept,
  shards,
  sum,
  sweepShard,
  timeText,
  type WorkedPage,
} from "./outbox.ts";

/** What is done about jobs that wait, beside what an outbox does with its rows. */
export interface DueStore {
  /** Notes that a row is being sent, so that nobody takes it back any more; `false` where it is gone. */
  begin(place: DuePlace): Promise<boolean>;
  /** Takes a tenant's row back; `false` where there is none, or it is being sent. */
  takeBack(place: DuePlace, tenantId: string | undefined): Promise<boolean>;
}

/** What sending due jobs works with. */
export interface DueJobsOptions {
  readonly store: OutboxStore;
  readonly due: DueStore;
  readonly jobs: () => Promise<Pick<MessageQueue, "send" | "isFinal">>;
  readonly claims: Claims;
  /** Where sweeps of these shards have stopped. */
  readonly stops: SweepStops;
  readonly clock: Clock;
  readonly log: Logger;
  /** Counts what is set aside. Default: nobody does. */
  readonly metrics?: Metrics | undefined;
}

interface SendingOptions extends Omit<DueJobsOptions, "due"> {
  /** Absent where nobody can take the jobs back. */
  readonly due: DueStore | undefined;
}

/** So many are sent at the same time. */
const atOnce = 20;
const maxReasonLength = 500;

/**
 * Sends the jobs that are due, of every shard that no other sweep has claimed. What is due later is not even read.
 *
 * @throws what the store throws.
 */
export async function sweepDueJobs(
  options: DueJobsOptions,
  signal: AbortSignal | undefined,
): Promise<Swept> {
  let total: Swept = { dispatched: 0, left: 0, setAside: 0 };
  for (let number = 0; number < shards && !signal?.aborted; number += 1) {
    const before = timeText(options.clock.now() + 1);
    total = sum(
      total,
      await sweepShard(options, dueShard(number), before, signal, (rows) => sendAll(options, rows)),
    );
  }
  return total;
}

/** Sends jobs that were committed, and that nobody can take back. Never throws: what was not sent is left to the sweep. */
export async function sendCommitted(
  options: DueJobsOptions,
  rows: readonly OutboxRow[],
): Promise<void> {
  await sendAll({ ...options, due: undefined }, rows);
}

async function sendAll(options: SendingOptions, rows: readonly OutboxRow[]): Promise<WorkedPage> {
  let swept: Swept = { dispatched: 0, left: 0, setAside: 0 };
  let hasAnswers = false;
  const failed: string[] = [];
  let firstReason: string | undefined;
  const attempt = async (row: OutboxRow): Promise<Swept> => {
    try {
      const refusal = await sendOne(options, row);
      hasAnswers = true;
      return refusal === undefined
        ? { dispatched: 1, left: 0, setAside: 0 }
        : await setAside(options, row, refusal);
    } catch (error) {
      failed.push(`${row.type} ${row.eventId}`);
      firstReason ??= String(error);
      return { dispatched: 0, left: 1, setAside: 0 };
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
 * Sends one. A row that is sent a second time has the same deduplication ID, and its job the same claim.
 *
 * @returns why it will never be taken; `undefined` where it was.
 * @throws any other failure. Right after the commit also a refusal: only a sweep, which has claimed the shard, sets rows aside.
 */
async function sendOne(
  { store, due, jobs }: SendingOptions,
  row: OutboxRow,
): Promise<string | undefined> {
  const waiting = waitingJob(row);
  if (waiting === undefined) return "the row is no job: it has no message, or not how it is queued";
  // One that was taken back meanwhile counts as done: the page moves on.
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
    if (!(await store.setAside(row, reason, clock.now())))
      return { dispatched: 0, left: 0, setAside: 0 };
  } catch (error) {
    log.warn("job.set_aside_failed", { ...told, refusal: reason, reason: String(error) });
    return { dispatched: 0, left: 1, setAside: 0 };
  }
  metrics?.record("keelson.dead_letters", 1, {
    "keelson.kind": row.type === deliveryJob ? "delivery" : "job",
  });
  log.error("job.set_aside", { ...told, reason });
  return { dispatched: 0, left: 0, setAside: 1 };
}
