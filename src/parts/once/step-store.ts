import type { ClaimKey } from "./claim.ts";
import type { DoneStep, IfUnknown, StartedStep, StepRecord, UndoneStep } from "./step.ts";

/** Facts that the row of a step contains in addition to its record, for operators. */
export interface StepFacts {
  readonly name: string;
  /** Full name of the handler. */
  readonly handler: string;
  /** Correlation ID of the run that started the step. */
  readonly requestId: string;
  /** ISO 8601. */
  readonly startedAt: string;
  /** Whether its result is sealed. */
  readonly isSealed: boolean;
  /** Retention after its last change, in milliseconds. */
  readonly keepMs: number;
  /** Claim of the runs that the step belongs to. */
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
  /** An existing record does not allow it. */
  | "taken"
  /** A concurrent transaction or write touched the same rows, and this one wrote no row. */
  | "conflict";

/** Stores steps. Every method is atomic. */
export interface StepStore {
  /**
   * Puts a started step if `owner` holds the claim in progress and no existing record forbids it.
   * Records that allow it: an expired one, one that is not done, the owner's, and with `retry` one
   * that another owner started.
   *
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
   * Records how a step ended. Returns `false` if `from` did not start it, or if another run or an
   * operator has started or resolved it since.
   */
  end(place: ClaimKey, step: DoneStep | UndoneStep, from: string): Promise<boolean>;
  /** Finds the step of a key, with its facts. For operators. */
  find(key: string): Promise<ListedStep | undefined>;
  /** Lists all steps by scanning the whole table. */
  list(): AsyncIterable<ListedStep>;
}
