import type { ClaimInProgress, ClaimKey, ClaimRecord, CompletedClaim } from "./claim.ts";

/** One action of a transaction, as DynamoDB's document client takes it. */
export type TransactionItem = Readonly<Record<string, unknown>>;

/** Why an item cancelled its transaction; code `None` where it did not. */
export interface CancellationReason {
  readonly code: string;
  readonly message: string;
}

/** A transaction that also completes a claim. */
export interface ClaimCommit {
  readonly items: readonly TransactionItem[];
  /** With the same token, and the same items, it is one transaction for ten minutes. */
  readonly token: string;
  /** Where there is a claim: it becomes this, if it is in progress and its owner's. */
  readonly completed: { readonly key: ClaimKey; readonly claim: CompletedClaim } | undefined;
  /** The claim that `owner` must hold in progress, though the transaction does not complete it. */
  readonly held?: { readonly key: ClaimKey; readonly owner: string } | undefined;
  /** Whose run it is. */
  readonly tenantId?: string | undefined;
}

/** Keeps claims: each of these calls is atomic. */
export interface ClaimStore {
  /**
   * Puts a claim where none is in the way at `nowMs`. One whose lease is over is in the way of a claim with another generation.
   *
   * @returns the record that is in the way; `undefined` where the claim was taken.
   */
  take(key: ClaimKey, claim: ClaimInProgress, nowMs: number): Promise<ClaimRecord | undefined>;
  /** The record as every write before has left it. */
  read(key: ClaimKey): Promise<ClaimRecord | undefined>;
  /** Prolongs the lease; `false` where the claim is not `owner`'s any more. */
  renew(key: ClaimKey, owner: string, leaseUntilMs: number, expiresAt: number): Promise<boolean>;
  /** Replaces the claim by its completed form; `false` where it is not `claim.owner`'s any more. */
  complete(key: ClaimKey, claim: CompletedClaim): Promise<boolean>;
  /** Takes the claim away, where it is `owner`'s and still in progress. */
  release(key: ClaimKey, owner: string): Promise<void>;
  /** Ends the lease of the same claim instead, so that the next run inherits its generation. */
  vacate(key: ClaimKey, owner: string, expiresAt: number): Promise<void>;
  /** Retains a completed claim until `expiresAt`, in seconds since the epoch. */
  extend(key: ClaimKey, owner: string, expiresAt: number): Promise<void>;
  /**
   * Writes all items or none, and completes the claim with them.
   *
   * @returns why it was cancelled, one reason for each item and one for the claim that is completed or held; `undefined` where
   * it was written.
   * @throws where the outcome is not known, or the store refuses it as a whole.
   */
  commit(commit: ClaimCommit): Promise<readonly CancellationReason[] | undefined>;
  /** Keeps parts of a result that is too large for the record; another owner's are other parts. */
  putParts(
    key: ClaimKey,
    owner: string,
    parts: readonly Uint8Array[],
    expiresAt: number,
  ): Promise<void>;
  /** The parts of a result, in order; `undefined` where one is not there. */
  readParts(
    key: ClaimKey,
    owner: string,
    count: number,
  ): Promise<readonly Uint8Array[] | undefined>;
}
