import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from "aws-lambda";
import { outboxTable } from "../../app/handlers/table.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { readOutboxRecord, type WrittenRow } from "../../aws/stores/outbox-record.ts";
import { type OutboxRow, type OutboxStore, sweepClaim } from "../../parts/messages/outbox-store.ts";

export { createLambdaRuntime, loadSdk, openMeasuring } from "../lambda-http/lambda-runtime.ts";

export interface TimeLeft {
  /**
   * Time at which Lambda ends the process, in epoch milliseconds; `undefined` if the context has no
   * limit.
   */
  readonly deadlineMs: number | undefined;
  /** Returns whether it is too late to start work that takes `ms` milliseconds. */
  isOverIn(ms: number): boolean;
}

/** Minimum age of a row, in milliseconds. The run that committed a younger one dispatches it. */
const graceMs = 2_000;
/** Time to wait for a concurrent sweep of the same shard, in milliseconds. */
const sweepMs = 2_000;
/** Number of rows that are read and dispatched together. */
const pageSize = 100;

/**
 * Dispatches the rows that one invocation's records name, unless they have left the outbox.
 *
 * @throws TypeError if the event is not from a DynamoDB stream.
 */
export async function dispatchRecords(
  runtime: Runtime,
  event: DynamoDBStreamEvent,
  time: TimeLeft,
): Promise<DynamoDBBatchResponse> {
  const records: readonly unknown[] | undefined = event?.Records;
  if (!Array.isArray(records) || (records.length > 0 && !records.some(isOfStream))) {
    throw new TypeError(
      "lambdaOutbox: the event is not of a DynamoDB stream; check the function's trigger",
    );
  }
  const written = writtenRows(runtime, event);
  if (written.length === 0) return { batchItemFailures: [] };
  const { outbox } = await runtime.adapters.open();
  const shards = [...Map.groupBy(written, ({ shard }) => shard)];
  const left = await Promise.all(
    shards.map(([shard, rows]) => dispatchShard(runtime, outbox, time, shard, rows)),
  );
  // Lambda redelivers all records from the first failed one. By then, the table no longer holds the
  // dispatched rows.
  const kept = new Set(left.flat());
  const first = written.find((row) => kept.has(row));
  return {
    batchItemFailures: first === undefined ? [] : [{ itemIdentifier: first.sequenceNumber }],
  };
}

function isOfStream(record: Partial<DynamoDBRecord> | null | undefined): boolean {
  return record?.eventSource === "aws:dynamodb";
}

/** Returns the rows that the records name. Logs one line about all others. */
function writtenRows(
  runtime: Pick<Runtime, "tableName" | "log">,
  { Records }: DynamoDBStreamEvent,
): WrittenRow[] {
  const tableName = runtime.tableName(outboxTable.name);
  const written: WrittenRow[] = [];
  const reasons: Record<string, number> = {};
  let hasForeign = false;
  for (const record of Records) {
    const read = readOutboxRecord(record, tableName);
    if ("row" in read) written.push(read.row);
    else {
      reasons[read.skipped] = (reasons[read.skipped] ?? 0) + 1;
      hasForeign ||= read.isForeign;
    }
  }
  const records = Records.length - written.length;
  if (records > 0)
    runtime.log[hasForeign ? "warn" : "debug"]("outbox.records_skipped", { records, reasons });
  return written;
}

/** Dispatches the pending rows of one shard and returns those that remain. Never throws. */
async function dispatchShard(
  runtime: Pick<Runtime, "clock" | "log" | "runs">,
  store: OutboxStore,
  time: TimeLeft,
  shard: string,
  rows: readonly WrittenRow[],
): Promise<readonly WrittenRow[]> {
  const { clock, log } = runtime;
  const { once, outbox } = await runtime.runs.open();
  let waiting: readonly OutboxRow[] | undefined;
  try {
    if (time.isOverIn(0)) return rows;
    waiting = await rowsOf(store, shard, rows);
    // Usual case: the run that committed the rows has dispatched them.
    if (waiting.length === 0) return [];
    const youngest = Math.max(...waiting.map(({ sort }) => Number(timeOf(sort))));
    const youngMs = Math.min(graceMs, graceMs - (clock.now() - youngest));
    if (time.isOverIn(Math.max(0, youngMs))) return leftOf(rows, waiting);
    if (youngMs > 0) await new Promise((resolve) => setTimeout(resolve, youngMs));
    // The claim keeps a concurrent sweep away from these rows.
    const claim = await once.claims.take(sweepClaim(shard), {
      waitMs: sweepMs,
      stop: [],
      deadlineMs: time.deadlineMs,
    });
    if (claim.kind !== "taken") return leftOf(rows, waiting);
    let [dispatched, setAside] = [0, 0];
    try {
      waiting = await rowsOf(store, shard, rows);
      for (
        let at = 0;
        at < waiting.length && !time.isOverIn(0) && !claim.claim.isLost();
        at += pageSize
      ) {
        const swept = await outbox.dispatchLeft(waiting.slice(at, at + pageSize));
        dispatched += swept.dispatched;
        setAside += swept.setAside;
      }
      waiting = await rowsOf(store, shard, rows);
    } finally {
      await claim.claim.release();
    }
    const left = waiting.length;
    if (dispatched + setAside + left > 0)
      log.info("outbox.streamed", { dispatched, left, setAside });
    return leftOf(rows, waiting);
  } catch (error) {
    log.warn("outbox.stream_failed", { reason: String(error) });
    return waiting === undefined ? rows : leftOf(rows, waiting);
  }
}

/** Returns which of the given rows are still pending. Reads consistently and in order. */
async function rowsOf(
  store: OutboxStore,
  shard: string,
  rows: readonly WrittenRow[],
): Promise<OutboxRow[]> {
  const sorts = new Set(rows.map(({ sort }) => sort));
  const times = rows.map(({ sort }) => timeOf(sort)).sort();
  // Sort keys start with `<time>#`: a bare time sorts before them, and one with `$` after them.
  const [first, last] = [String(times[0]), `${times.at(-1)}$`];
  const found: OutboxRow[] = [];
  let after: string | undefined = first;
  while (after !== undefined && found.length < sorts.size) {
    const page: readonly OutboxRow[] = await store.pending(shard, last, pageSize, after);
    found.push(...page.filter(({ sort }) => sorts.has(sort)));
    after = page.at(-1)?.sort;
  }
  return found;
}

function leftOf(rows: readonly WrittenRow[], waiting: readonly OutboxRow[]): WrittenRow[] {
  const sorts = new Set(waiting.map(({ sort }) => sort));
  return rows.filter(({ sort }) => sorts.has(sort));
}

function timeOf(sort: string): string {
  return sort.slice(0, sort.indexOf("#"));
}
