import {
  type ClaimKey,
  type ClaimRecord,
  expiry,
  judge,
  longestMessageMs,
  type StoredResult,
} from "./claim.ts";

/**
 * Reaction to a step whose earlier call has an unknown outcome: `refuse` throws an
 * `UnknownOutcomeError`, `retry` calls the step again.
 */
export type IfUnknown = "refuse" | "retry";

export const defaultKeepMs = longestMessageMs;

interface Attempt {
  /** Of the run's claim; a fixed name if an operator has resolved the step. */
  readonly owner: string;
  /** Time from which the store may delete the record, in epoch seconds. */
  readonly expiresAt: number;
}

/** Step that is running, or whose outcome is unknown. */
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

export type StepVerdict =
  | "call"
  /** Returns the earlier result. */
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

export function undoneStep(owner: string, nowMs: number, keepMs: number): UndoneStep {
  return { status: "NOT_DONE", owner, expiresAt: expiry(nowMs, keepMs) };
}

export type StepStanding = "running" | "unknown" | "done" | "not done";

/** A step is `running` while its run holds the claim, and `unknown` after that. */
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

export function stepPlace(key: string, tenantId: string | undefined): ClaimKey {
  return { partition: `step:${key}`, sort: "step", tenantId };
}

/** Facts for operators in the row of a step. */
export interface StepFacts {
  readonly name: string;
  readonly handler: string;
  readonly requestId: string;
  /** In ISO 8601. */
  readonly startedAt: string;
  /** Whether the result is encrypted. */
  readonly isSealed: boolean;
  /** Retention after the step's last change, in milliseconds. */
  readonly keepMs: number;
  readonly claim: ClaimKey;
}

export interface ListedStep extends StepFacts {
  readonly key: string;
  readonly record: StepRecord;
  readonly tenantId: string | undefined;
}

export type Started =
  | "started"
  /** The claim no longer belongs to the run. */
  | "fenced"
  /** An existing record forbids the start. */
  | "taken"
  /** A concurrent write to the same rows canceled the transaction. */
  | "conflict";

/** Stores steps. Every method is atomic. */
export interface StepStore {
  /**
   * Stores a started step if its owner holds the claim in progress, and the existing record is
   * absent, expired, not done, or started by the same owner; with `retry` also by another owner.
   * @throws if the outcome is unknown.
   */
  start(
    place: ClaimKey,
    step: StartedStep,
    facts: StepFacts,
    ifUnknown: IfUnknown,
    nowMs: number,
  ): Promise<Started>;
  read(place: ClaimKey): Promise<StepRecord | undefined>;
  /**
   * Records how a step ended. Returns `false` unless `from` started the step and no other run or
   * operator has changed it since.
   */
  end(place: ClaimKey, step: DoneStep | UndoneStep, from: string): Promise<boolean>;
  find(key: string): Promise<ListedStep | undefined>;
  /** Lists all steps by scanning the whole table. Tells `onPage` the number of rows scanned so far. */
  list(onPage?: (scanned: number) => void): AsyncIterable<ListedStep>;
}
