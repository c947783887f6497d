import type { Logger } from "../log/logger.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Claims } from "../once/claims.ts";
import type { Clock } from "../process/clock.ts";
import { type DuePlace, dueShard, waitingJob } from "./later.ts";
import type { MessageQueue } from "./message-queue.ts";
import { type OutboxRow, type OutboxStore, type Swept, shards, sum, sweepShard, timeText } from "./outbox.ts";

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
  readonly jobs: () => Promise<Pick<MessageQueue, "send">>;
  readonly claims: Claims;
  readonly clock: Clock;
  readonly log: Logger;
  /** Counts what is set aside. Default: nobody does. */
  readonly metrics?: Metrics | undefined;
}

/** So many are sent at the same time. */
const atOnce = 20;

/**
 * Sends the jobs that are due, of every shard that no other sweep has claimed. What is due later is not even read.
 *
 * @throws what the store throws.
 */
export async function sweepDueJobs(options: DueJobsOptions, signal: AbortSignal | undefined): Promise<Swept> {
  let total: Swept = { dispatched: 0, left: 0, setAside: 0 };
  for (let number = 0; number < shards && !signal?.aborted; number += 1) {
    const before = timeText(options.clock.now() + 1);
    total = sum(total, await sweepShard(options, dueShard(number), before, signal, (rows) => sendAll(options, rows)));
  }
  return total;
}

async function sendAll(options: DueJobsOptions, rows: readonly OutboxRow[]): Promise<Swept> {
  let total: Swept = { dispatched: 0, left: 0, setAside: 0 };
  const failed: string[] = [];
  let firstReason: string | undefined;
  const attempt = async (row: OutboxRow): Promise<Swept> => {
    try {
      return await sendOne(options, row);
    } catch (error) {
      failed.push(`${row.type} ${row.eventId}`);
      firstReason ??= String(error);
      return { dispatched: 0, left: 1, setAside: 0 };
    }
  };
  for (let start = 0; start < rows.length; start += atOnce) {
    for (const one of await Promise.all(rows.slice(start, start + atOnce).map(attempt))) total = sum(total, one);
  }
  if (failed.length > 0) options.log.warn("job.dispatch_failed", { jobs: failed, reason: firstReason });
  return total;
}

/** A row that is sent a second time has the same deduplication ID, and its job the same claim. */
async function sendOne({ store, due, jobs, clock, log, metrics }: DueJobsOptions, row: OutboxRow): Promise<Swept> {
  const waiting = waitingJob(row);
  if (waiting === undefined) {
    const reason = "the row is no job: it has no message, or not how it is queued";
    const isAside = await store.setAside(row, reason, clock.now());
    if (isAside) {
      metrics?.record("keelson.dead_letters", 1, { "keelson.kind": "job" });
      log.error("job.set_aside", { job: row.type, jobId: row.eventId, reason });
    }
    return { dispatched: 0, left: 0, setAside: isAside ? 1 : 0 };
  }
  // One that was taken back meanwhile counts as done: the page moves on.
  if (!(await due.begin(row))) return { dispatched: 1, left: 0, setAside: 0 };
  const { text, ...queued } = waiting;
  await (await jobs()).send(text, queued);
  await store.remove(row);
  return { dispatched: 1, left: 0, setAside: 0 };
}
