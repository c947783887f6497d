import type { ClaimKey } from "./claim.ts";
import { type ClaimRecord, expiry, judge, longestMessageMs, type StoredResult } from "./claim.ts";

/** Reaction to a step whose outcome is unknown: `refuse` throws, `retry` calls it again. */
export type IfUnknown = "refuse" | "retry";

/** Default retention of a step, in milliseconds. */
export const defaultKeepMs = longestMessageMs;

interface Attempt {
  /** Owner of the run's claim. An operator who resolves a step is not an owner. */
  readonly owner: string;
  /** Time from which the store may delete the record, in seconds since the epoch. */
  readonly expiresAt: number;
}

/** Step that was started: it is running, or its outcome is unknown. */
export interface StartedStep extends Attempt {
  readonly status: "STARTED";
}

export interface DoneStep extends Attempt {
  readonly status: "DONE";
  readonly result: StoredResult;
}

/** Step that is known to have done nothing. */
export interface UndoneStep extends Attempt {
  readonly status: "NOT_DONE";
}

export type StepRecord = StartedStep | DoneStep | UndoneStep;

/** Reaction of a run to a step. */
export type StepVerdict =
  | "call"
  /** Returns the earlier result and makes no call. */
  | "give"
  /** Throws, because the outcome is unknown. */
  | "refuse";

/**
 * Decides how a run reacts to the record of a step:
 *
 * | record | `refuse` | `retry` |
 * |---|---|---|
 * | none, or expired | `call` | `call` |
 * | not done | `call` | `call` |
 * | started by this run, and the response was lost | `call` | `call` |
 * | started by another run, which has ended | `refuse` | `call` |
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

export function startedStep(owner: string, nowMs: number, keepMs: number): StartedStep {
  return { status: "STARTED", owner, expiresAt: expiry(nowMs, keepMs) };
}

export function doneStep(
  owner: string,
  nowMs: number,
  keepMs: number,
  result: StoredResult,
): DoneStep {
  return { status: "DONE", owner, expiresAt: expiry(nowMs, keepMs), result };
}

/** Creates the record of a step that is known to have done nothing. */
export function undoneStep(owner: string, nowMs: number, keepMs: number): UndoneStep {
  return { status: "NOT_DONE", owner, expiresAt: expiry(nowMs, keepMs) };
}

export type StepStanding = "running" | "unknown" | "done" | "not done";

/**
 * Determines the state of a step from the claim of the run that started it. The state is `unknown`
 * once that run has ended.
 */
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

/** Returns the place of a step: a separate partition for each key. */
export function stepPlace(key: string, tenantId: string | undefined): ClaimKey {
  return { partition: `step:${key}`, sort: "step", tenantId };
}
