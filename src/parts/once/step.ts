import type { ClaimKey } from "./claim.ts";
import { type ClaimRecord, expiry, judge, longestMessageMs, type StoredResult } from "./claim.ts";

/** What is done where it is not known how a step ended. */
export type IfUnknown = "refuse" | "retry";

/** How long a step is remembered by default, in milliseconds. */
export const defaultKeepMs = longestMessageMs;

/** Who has begun a step, and for how long it is remembered. */
interface Attempt {
  /** The owner of the run's claim; who resolved it is none. */
  readonly owner: string;
  /** When the store may forget it, in seconds since the epoch. */
  readonly expiresAt: number;
}

/** A step that was begun: it is running, or how it ended is not known. */
export interface StartedStep extends Attempt {
  readonly status: "STARTED";
}

/** A step that is done, and what came of it. */
export interface DoneStep extends Attempt {
  readonly status: "DONE";
  readonly result: StoredResult;
}

/** A step of which it is known that nothing was done. */
export interface UndoneStep extends Attempt {
  readonly status: "NOT_DONE";
}

/** A step as it is stored. */
export type StepRecord = StartedStep | DoneStep | UndoneStep;

/** What a run does about a step. */
export type StepVerdict =
  /** It calls. */
  | "call"
  /** It gives the result of before, without calling. */
  | "give"
  /** It throws: nobody knows how it ended. */
  | "refuse";

/**
 * What a run does about a step that it finds:
 *
 * | the record | `refuse` | `retry` |
 * |---|---|---|
 * | there is none, or it has expired | `call` | `call` |
 * | not done | `call` | `call` |
 * | started by this run: the answer of beginning it was lost | `call` | `call` |
 * | started by another run, which is over | `refuse` | `call` |
 * | done | `give` | `give` |
 */
export function stepVerdict(
  record: StepRecord | undefined,
  owner: string,
  ifUnknown: IfUnknown,
  nowMs: number,
): StepVerdict {
  if (record === undefined || record.expiresAt * 1000 <= nowMs) return "call";
  if (record.status === "DONE") return "give";
  if (record.status === "NOT_DONE" || record.owner === owner) return "call";
  return ifUnknown === "retry" ? "call" : "refuse";
}

/** A step that `owner` begins at `nowMs`. */
export function startedStep(owner: string, nowMs: number, keepMs: number): StartedStep {
  return { status: "STARTED", owner, expiresAt: expiry(nowMs, keepMs) };
}

/** The same once it is done. */
export function doneStep(
  owner: string,
  nowMs: number,
  keepMs: number,
  result: StoredResult,
): DoneStep {
  return { status: "DONE", owner, expiresAt: expiry(nowMs, keepMs), result };
}

/** The same where it is known that nothing was done. */
export function undoneStep(owner: string, nowMs: number, keepMs: number): UndoneStep {
  return { status: "NOT_DONE", owner, expiresAt: expiry(nowMs, keepMs) };
}

/** How a step stands. */
export type StepStanding = "running" | "unknown" | "done" | "not done";

/** How a step stands, with the claim of the run that has begun it: `unknown` once that run is over. */
export function stepStanding(
  record: StepRecord,
  claim: ClaimRecord | undefined,
  nowMs: number,
): StepStanding {
  if (record.status === "DONE") return "done";
  if (record.status === "NOT_DONE") return "not done";
  const isHeld = claim?.status === "INPROGRESS" && claim.owner === record.owner;
  return isHeld && judge(claim, "", nowMs) === "running" ? "running" : "unknown";
}

/** Where a step is stored, by its key: a partition of its own. */
export function stepPlace(key: string, tenantId: string | undefined): ClaimKey {
  return { partition: `step:${key}`, sort: "step", tenantId };
}
