import type { ClaimInProgress, ClaimKey, ClaimRecord, CompletedClaim } from "./claim.ts";

/** Action of a transaction, in the form DynamoDB's document client takes. */
export type TransactionItem = Readonly<Record<string, unknown>>;

/** Reason why an item canceled its transaction. The code is `None` for an item that did not. */
export interface CancellationReason {
  readonly code: string;
  readonly message: string;
}

/** Transaction that can also complete a claim. */
export interface ClaimCommit {
  readonly items: readonly TransactionItem[];
  /**
   * DynamoDB treats requests with the same token and the same items as one transaction for ten
   * minutes.
   */
  readonly token: string;
  /** Claim to complete, if there is one. It must be in progress and belong to the owner. */
  readonly completed: { readonly key: ClaimKey; readonly claim: CompletedClaim } | undefined;
  /** Claim that `owner` must hold in progress, although the transaction does not complete it. */
  readonly held?: { readonly key: ClaimKey; readonly owner: string } | undefined;
  readonly tenantId?: string | undefined;
}

/** Stores claims. Every method is atomic. */
export interface ClaimStore {
  /**
   * Puts a claim unless another record blocks it at `nowMs`. A claim whose lease has expired still
   * blocks a claim with another generation.
   *
   * @returns the record that blocks it; `undefined` if the claim was taken.
   */
  take(key: ClaimKey, claim: ClaimInProgress, nowMs: number): Promise<ClaimRecord | undefined>;
  /** Reads the record with strong consistency: it reflects every earlier write. */
  read(key: ClaimKey): Promise<ClaimRecord | undefined>;
  /** Extends the lease. Returns `false` if the claim no longer belongs to `owner`. */
  renew(key: ClaimKey, owner: string, leaseUntilMs: number, expiresAt: number): Promise<boolean>;
  /**
   * Replaces the claim with its completed form. Returns `false` if it no longer belongs to
   * `claim.owner`.
   */
  complete(key: ClaimKey, claim: CompletedClaim): Promise<boolean>;
  /** Deletes the claim if it belongs to `owner` and is still in progress. */
  release(key: ClaimKey, owner: string): Promise<void>;
  /**
   * Ends the lease of a claim in progress that belongs to `owner`, without deleting the record, so
   * that the next run inherits its generation.
   */
  vacate(key: ClaimKey, owner: string, expiresAt: number): Promise<void>;
  /** Retains a completed claim until `expiresAt`, in seconds since the epoch. */
  extend(key: ClaimKey, owner: string, expiresAt: number): Promise<void>;
  /**
   * Writes all items or none, and completes the claim in the same transaction.
   *
   * @returns the reasons for a cancellation, one per item and one for the claim that is completed
   * or held; `undefined` if the transaction was written.
   * @throws if the outcome is unknown, or the store refuses the transaction as a whole.
   */
  commit(commit: ClaimCommit): Promise<readonly CancellationReason[] | undefined>;
  /**
   * Stores the parts of a result that is too large for the record. Each owner has separate parts.
   */
  putParts(
    key: ClaimKey,
    owner: string,
    parts: readonly Uint8Array[],
    expiresAt: number,
  ): Promise<void>;
  /** Reads the parts of a result, in order. Returns `undefined` if one is missing. */
  readParts(
    key: ClaimKey,
    owner: string,
    count: number,
  ): Promise<readonly Uint8Array[] | undefined>;
}
