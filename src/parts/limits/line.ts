import { skewMs } from "../once/claim.ts";
import type { TransactionItem } from "../once/claim-store.ts";

/**
 * Line of the jobs of an ordered group, once one of them had to wait for a slot or a rate limit.
 * Waiting jobs are in the outbox. Each returns to the queue when it is due, and is stored again until it may run.
 *
 * A position never changes, and decides the order. A turn is new each time a job is stored; since
 * rows are due in the order of their turns, and both outbox and queue keep the order of a group,
 * jobs return in the order of their turns.
 */
export interface Line {
  /** Position of the job that may run next. Equals `next` while nothing waits. */
  readonly first: number;
  /** Position of the next job that joins. */
  readonly next: number;
  /** The last turn in which the first job can return. */
  readonly firstBy: number;
  /** The last turn given. */
  readonly turn: number;
  /** When the job of the last turn is due, in epoch milliseconds. */
  readonly dueMs: number;
}

export interface Place {
  readonly position: number;
  readonly turn: number;
}

const emptyLine: Line = Object.freeze({ first: 1, next: 1, firstBy: 0, turn: 0, dueMs: 0 });

/**
 * Whether a job may run, and the line as its arrival proves it to be. A job of a later turn than the
 * first job's only arrives after the first job has left the queue without leaving the line, for
 * example for the dead-letter queue after crashes.
 *
 * @param place - undefined for a job that has never waited.
 */
export function arrival(
  line: Line = emptyLine,
  place?: Place,
): { readonly line: Line; readonly mayRun: boolean } {
  if (place === undefined) return { line, mayRun: line.first === line.next };
  const isFirstLost =
    line.first < line.next && place.position > line.first && place.turn > line.firstBy;
  const found = isFirstLost ? { ...line, first: line.first + 1, firstBy: line.turn } : line;
  // A job before the first was taken for lost. Waiting would not restore the order.
  return { line: found, mayRun: place.position <= found.first || found.first === found.next };
}

/**
 * Shortest time until a waiting job is sent again, in milliseconds. A sweep with a clock that is
 * ahead must not see the row as due before it is written: it could pass that place, send the next
 * job of the group, and so make this one seem lost.
 */
const leastWaitMs = skewMs + 1_000;

/**
 * When a job that has to wait is due at the earliest, in epoch milliseconds.
 *
 * @param mayRun - whether it waits for a limit and not for another job.
 */
export function dueFrom(mayRun: boolean, nowMs: number, afterMs: number): number {
  return nowMs + (mayRun ? Math.max(leastWaitMs, afterMs) : leastWaitMs);
}

/** The line with a job that has to wait until `fromMs`, in epoch milliseconds, and after all others. */
export function joined(
  line: Line,
  place: Place | undefined,
  fromMs: number,
): { readonly line: Line; readonly place: Place } {
  const isEmpty = line.first === line.next;
  const position = isEmpty ? line.next : (place?.position ?? line.next);
  const turn = line.turn + 1;
  return {
    place: { position, turn },
    line: {
      first: line.first,
      next: Math.max(line.next, position + 1),
      firstBy: position === line.first ? turn : line.firstBy,
      turn,
      dueMs: Math.max(fromMs, line.dueMs + 1),
    },
  };
}

/** The line after a job is done. */
export function left(line: Line, { position }: Place): Line {
  if (position < line.first) return line;
  // If the row was missing, the position is new to the line.
  const next = Math.max(line.next, position + 1);
  return { ...line, first: position + 1, next, firstBy: line.turn };
}

export interface StoredLine extends Line {
  /** Changes with each change of the line. */
  readonly version: number;
}

export interface LineChange {
  readonly group: string;
  /** The line as read; `undefined` if it did not exist. */
  readonly read: StoredLine | undefined;
  readonly line: Line;
  readonly tenantId: string | undefined;
  /** Time from which the store may delete the line, in epoch seconds. */
  readonly expiresAt: number;
  /** Written in the same transaction. */
  readonly items: readonly TransactionItem[];
}

/** Stores the line of each group. */
export interface LineStore {
  /** Reads with strong consistency. */
  read(group: string): Promise<StoredLine | undefined>;
  /** Resolves to `false` if the line has changed since it was read. */
  change(change: LineChange): Promise<boolean>;
}
