import type { ClaimKey } from "./claim.ts";
import type { DoneStep, IfUnknown, StartedStep, StepRecord, UndoneStep } from "./step.ts";

/** What the row of a step says beside its record, for people and for who resolves it. */
export interface StepFacts {
  readonly name: string;
  /** The full name of the handler. */
  readonly handler: string;
  /** The correlation ID of the run that has begun it. */
  readonly requestId: string;
  /** ISO 8601. */
  readonly startedAt: string;
  /** Whether its result is sealed. */
  readonly isSealed: boolean;
  /** For how long it is remembered after its last change, in milliseconds. */
  readonly keepMs: number;
  /** The claim of the runs that it belongs to. */
  readonly claim: ClaimKey;
}

/** A step as it is listed. */
export interface ListedStep extends StepFacts {
  readonly key: string;
  readonly record: StepRecord;
  readonly tenantId: string | undefined;
}

/** How beginning a step ended. */
export type Started =
  | "started"
  /** The claim is not the run's any more. */
  | "fenced"
  /** There is a record that does not allow it. */
  | "taken"
  /** Another transaction or write was at the same rows; nothing was written. */
  | "conflict";

/** Keeps steps: each of these calls is atomic. */
export interface StepStore {
  /**
   * Puts a step that is begun, if `owner` holds the claim in progress, and if the record that is there allows it: none, one that
   * has expired, not done, the owner's own, and with `retry` one that was begun by another.
   *
   * @throws where the outcome is not known.
   */
  start(
    place: ClaimKey,
    step: StartedStep,
    facts: StepFacts,
    ifUnknown: IfUnknown,
    nowMs: number,
  ): Promise<Started>;
  read(place: ClaimKey): Promise<StepRecord | undefined>;
  /** Says how a step ended; `false` where `from` has not begun it, or somebody else has begun or resolved it since. */
  end(place: ClaimKey, step: DoneStep | UndoneStep, from: string): Promise<boolean>;
  /** The step of a key, with all that is known of it; for operators. */
  find(key: string): Promise<ListedStep | undefined>;
  /** All steps; it reads the whole table. */
  list(): AsyncIterable<ListedStep>;
}
