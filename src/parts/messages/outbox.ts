import type { Logger } from "../../base/log/logger.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { Claims } from "../once/claims.ts";
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

export interface Refusal {
  readonly reason: string;
  /** Whether the event itself is the cause, so that the bus will never accept it. */
  readonly isFinal: boolean;
}

export interface EventBus {
  /** Retries, and returns why each event was not accepted; `undefined` for those that were. */
  put(
    events: readonly Pick<OutboxRow, "type" | "text">[],
  ): Promise<readonly (Refusal | undefined)[]>;
  readonly name: string;
  readonly isTraced?: boolean;
}

export interface OutboxOptions {
  readonly store: OutboxStore;
  readonly bus: () => Promise<EventBus>;
  readonly claims: Claims;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: Metrics | undefined;
  readonly stops?: SweepStops;
  readonly sweepDue?:
    | ((signal: AbortSignal | undefined, reports: SweepReports) => Promise<Swept>)
    | undefined;
}

export interface Outbox {
  row(event: Pick<OutboxRow, "eventId" | "type" | "tenantId">, text: string): OutboxRow;
  /** Dispatches committed rows. Never throws: rows that fail are logged and left for the sweep. */
  dispatch(rows: readonly OutboxRow[]): Promise<void>;
  /** Does the same for rows of a shard that the caller has claimed, as a sweep does. */
  dispatchLeft(rows: readonly OutboxRow[]): Promise<Swept>;
  /**
   * Dispatches the rows of every shard that no other sweep has claimed, and sets aside those that
   * the bus will never accept. Sends the due jobs at the same time. @throws any error of the store, once
   * both have ended.
   */
  sweep(options: SweepOptions): Promise<Swept>;
}

export interface SweepOptions {
  /** Minimum age of a row, in milliseconds. Younger rows are still being dispatched. */
  readonly graceMs: number;
  /** No page or job is started after it aborts. */
  readonly signal?: AbortSignal;
}

const noEvent: Refusal = {
  reason: "the row is not an event: it has no envelope, type or event ID",
  isFinal: true,
};

export function createOutbox(options: OutboxOptions): Outbox {
  const { store, claims, clock, log, metrics, stops = new Map(), sweepDue } = options;
  return {
    row: ({ eventId, type, tenantId }, text) => {
      const shard = `shard#${Number.parseInt(eventId.slice(0, 8), 16) % shards}`;
      return { shard, sort: `${timeText(clock.now())}#${eventId}`, eventId, type, tenantId, text };
    },
    dispatch: async (rows) => {
      if (rows.length === 0) return;
      try {
        await put(options, rows, false);
      } catch (error) {
        // The bus accepted the events, but the store did not remove them.
        log.warn("event.dispatch_failed", { events: rows.map(shown), reason: String(error) });
      }
    },
    dispatchLeft: async (rows) => (await put(options, rows, true)).swept,
    sweep: async ({ graceMs, signal }) => {
      const sweptFrom = clock.now();
      let oldestMs = sweptFrom;
      // Includes jobs, and rows of shards that another sweep has claimed.
      const seen: Sweeping["seen"] = (rows) => {
        for (const ms of rows.map(timeOf)) if (ms < oldestMs) oldestMs = ms;
      };
      let held = 0;
      const reports: SweepReports = {
        seen,
        held: () => {
          held += 1;
        },
      };
      const work = (rows: readonly OutboxRow[]) => put(options, rows, true);
      const before = sweptFrom - graceMs + 1;
      const events = { ...reports, store, claims, stops, signal, work };
      // Side by side, so that a backlog of one delays nothing of the other, nor does its error.
      const ended = await Promise.allSettled([
        sweepDue?.(signal, reports) ?? nothing,
        sweepShards(events, "shard", before),
      ]);
      const failure = ended.find((one) => one.status === "rejected");
      const total = ended
        .map((one) => (one.status === "fulfilled" ? one.value : nothing))
        .reduce(sum);
      const found = total.dispatched + total.left + total.setAside;
      // Another sweep sends what it holds. After an abort, this one does not know what others hold.
      const isBehind = total.left > (signal?.aborted ? 0 : held);
      if (found > 0) log[isBehind ? "warn" : "info"]("outbox.swept", { ...total });
      // A sweep that fails or stops before it sees a row does not know whether there is any.
      if (oldestMs < sweptFrom || (failure === undefined && !signal?.aborted)) {
        metrics?.record("keelson.outbox.length", found);
        metrics?.record("keelson.outbox.age", (sweptFrom - oldestMs) / 1_000);
      }
      if (failure !== undefined) throw failure.reason;
      return total;
    },
  };
}

async function put(
  options: OutboxOptions,
  rows: readonly OutboxRow[],
  setsAside: boolean,
): Promise<WorkedPage> {
  const { store, log } = options;
  const refusals = await refusalsOf(options, rows);
  const taken: OutboxRow[] = [];
  const left: string[] = [];
  const refused: [OutboxRow, string][] = [];
  let firstReason: string | undefined;
  for (const row of rows) {
    const refusal = refusals.get(row);
    if (refusal === undefined) taken.push(row);
    else if (setsAside && refusal.isFinal) refused.push([row, refusal.reason]);
    else {
      left.push(shown(row));
      firstReason ??= refusal.reason;
    }
  }
  if (left.length > 0) log.warn("event.dispatch_failed", { events: left, reason: firstReason });
  await Promise.all(taken.map((row) => store.remove(row)));
  let swept: Swept = { dispatched: taken.length, left: left.length, setAside: 0 };
  for (const [row, reason] of refused) swept = sum(swept, await setAside(options, row, reason));
  return { swept, hasAnswers: left.length < rows.length };
}

async function refusalsOf({ bus }: OutboxOptions, rows: readonly OutboxRow[]) {
  const readable = rows.filter(({ unreadable }) => unreadable === undefined);
  const refusals = new Map<OutboxRow, Refusal | undefined>(rows.map((row) => [row, noEvent]));
  try {
    const answers = readable.length === 0 ? [] : await (await bus()).put(readable);
    for (const [index, row] of readable.entries()) refusals.set(row, answers[index]);
  } catch (error) {
    for (const row of readable) refusals.set(row, { reason: String(error), isFinal: false });
  }
  return refusals;
}

async function setAside(
  { store, clock, log, metrics }: OutboxOptions,
  row: OutboxRow,
  reason: string,
): Promise<Swept> {
  const told = { type: row.type, eventId: row.eventId };
  try {
    if (!(await store.setAside(row, reason, clock.now()))) return nothing;
  } catch (error) {
    log.warn("event.set_aside_failed", { ...told, refusal: reason, reason: String(error) });
    return { ...nothing, left: 1 };
  }
  metrics?.record("keelson.dead_letters", 1, { "keelson.kind": "event" });
  log.error("event.set_aside", { ...told, reason });
  return { ...nothing, setAside: 1 };
}

/** When an event was written, or a job is due, in epoch milliseconds. */
function timeOf({ sort }: Pick<OutboxRow, "sort">): number {
  return Number(sort.slice(0, sort.indexOf("#")));
}

function shown({ type, eventId }: OutboxRow): string {
  return `${type} ${eventId}`;
}
