import { FrameworkError } from "../../base/errors/errors.ts";
import type { ClaimInProgress, ClaimKey, ClaimRecord, CompletedClaim } from "./claim.ts";

/** Put, Update, Delete or ConditionCheck, in the format of DynamoDB's document client. */
export type TransactionItem = Readonly<Record<string, unknown>>;

/** The code of an item that did not cancel its transaction is `None`. */
export interface CancellationReason {
  readonly code: string;
  readonly message: string;
}

export interface ClaimCommit {
  readonly items: readonly TransactionItem[];
  /** For ten minutes, DynamoDB treats requests with equal tokens and items as one transaction. */
  readonly token: string;
  /** The transaction fails unless `claim.owner` holds the claim in progress. */
  readonly completed: { readonly key: ClaimKey; readonly claim: CompletedClaim } | undefined;
  /** Claim that `owner` must hold in progress. It stays in progress. */
  readonly held?: { readonly key: ClaimKey; readonly owner: string } | undefined;
  readonly tenantId?: string | undefined;
}

/** Stores claims. Every method is atomic. */
export interface ClaimStore {
  /**
   * Stores a claim unless an existing record blocks it at `nowMs`. A record in progress whose lease
   * has expired still blocks a claim with another generation.
   * @returns the blocking record; `undefined` if the claim was taken.
   */
  take(key: ClaimKey, claim: ClaimInProgress, nowMs: number): Promise<ClaimRecord | undefined>;
  /** Reads with strong consistency. */
  read(key: ClaimKey): Promise<ClaimRecord | undefined>;
  /** Extends the lease. Returns `false` if the claim no longer belongs to `owner`. */
  renew(key: ClaimKey, owner: string, leaseUntilMs: number, expiresAt: number): Promise<boolean>;
  /** Completes the claim. Returns `false` if the claim no longer belongs to `claim.owner`. */
  complete(key: ClaimKey, claim: CompletedClaim): Promise<boolean>;
  /** Deletes a claim that `owner` holds in progress. */
  release(key: ClaimKey, owner: string): Promise<void>;
  /** Ends the lease of such a claim, whose generation the next run inherits from the record. */
  vacate(key: ClaimKey, owner: string, expiresAt: number): Promise<void>;
  /** Prolongs a completed claim until `expiresAt`, in epoch seconds. */
  extend(key: ClaimKey, owner: string, expiresAt: number): Promise<void>;
  /**
   * Writes all items or none, and completes the claim in the same transaction.
   * @returns the reasons for a cancellation, first of the items, then of the completed or held
   * claim; `undefined` if the transaction was written.
   * @throws if the outcome is unknown, or the store refuses the transaction as a whole.
   */
  commit(commit: ClaimCommit): Promise<readonly CancellationReason[] | undefined>;
  /** Stores a result that is too large for the record, separately for each owner. */
  putParts(
    key: ClaimKey,
    owner: string,
    parts: readonly Uint8Array[],
    expiresAt: number,
  ): Promise<void>;
  /** Returns `undefined` if a part is missing. */
  readParts(
    key: ClaimKey,
    owner: string,
    count: number,
  ): Promise<readonly Uint8Array[] | undefined>;
}

/** Errors with which DynamoDB, or the SDK before sending, refuses a request. */
const refusals = [
  "ValidationException",
  "AccessDeniedException",
  "ResourceNotFoundException",
  "IdempotentParameterMismatchException",
  "TypeError",
];

/** Whether DynamoDB, the SDK or keelson refused a commit, so that nothing was written. */
export function isRefusal(error: unknown): boolean {
  return (
    error instanceof FrameworkError || (error instanceof Error && refusals.includes(error.name))
  );
}
