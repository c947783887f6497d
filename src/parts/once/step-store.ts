import type { ClaimKey } from "./claim.ts";
import type { DoneStep, IfUnknown, StartedStep, StepRecord, UndoneStep } from "./step.ts";

/** Facts about a step that its row contains for operators. */
export interface StepFacts {
  readonly name: string;
  readonly handler: string;
  /** Correlation ID of the run that started the step. */
  readonly requestId: string;
  /** Time of the start, in ISO 8601. */
  readonly startedAt: string;
  /** Whether the step's result is encrypted. */
  readonly isSealed: boolean;
  /** Retention after the step's last change, in milliseconds. */
  readonly keepMs: number;
  /** Key of the claim that the step's run holds. */
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
  /** Lists all steps by scanning the whole table. */
  list(): AsyncIterable<ListedStep>;
}
