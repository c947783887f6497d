import { hash } from "node:crypto";

/** Default retention of a completed claim (specification 3.2), in milliseconds. */
export const defaultRetentionMs = 300_000;
/** Longest time SQS keeps a message, in milliseconds. */
export const longestMessageMs = 14 * 24 * 3_600_000;
/** Smallest extension of a message's completed claim that is worth a write, in milliseconds. */
export const extensionSlackMs = 3_600_000;
/**
 * Minimum retention of a message's completed claim, in milliseconds: a full day after the last
 * delivery, even if that delivery has not extended the claim.
 */
const leastMessageRetentionMs = 24 * 3_600_000 + extensionSlackMs;

/**
 * Returns the retention of a message's completed claim, in milliseconds: 1.5 times `redeliveryMs`,
 * at least 25 hours.
 * @param redeliveryMs - longest time from first to last delivery, in milliseconds.
 */
export function messageRetentionMs(redeliveryMs: number): number {
  return Math.max(leastMessageRetentionMs, Math.ceil(redeliveryMs * 1.5));
}

/** Length of a lease, in milliseconds, from taking the claim or from its last renewal. */
export const leaseMs = 30_000;
/** Clock difference allowed between processes, in milliseconds. Leases expire that much later. */
export const skewMs = 2_000;

export interface ClaimKey {
  readonly partition: string;
  /** Sort key: `dedup:<id>` (specification 3.2). */
  readonly sort: string;
  /** Tenant of the claim, stored so that all rows of a tenant can be found. */
  readonly tenantId?: string | undefined;
}

/**
 * Builds the key of a claim (specification 3.2). Hashes the parts of the namespace with their
 * lengths, so that two namespaces never have the same partition.
 */
export function claimKey(namespace: readonly string[], id: string, tenantId?: string): ClaimKey {
  const parts = namespace.map((part) => `${Buffer.byteLength(part)}:${part}`).join("");
  return { partition: hash("sha256", parts, "base64url"), sort: `dedup:${shortId(id)}`, tenantId };
}

/** Maximum length of an ID in a sort key. A longer ID is hashed. */
const longestId = 512;

function shortId(id: string): string {
  return id.length <= longestId ? id : `sha256:${hash("sha256", id, "base64url")}`;
}

export function keyText({ partition, sort }: ClaimKey): string {
  return `${partition} ${sort}`;
}

export interface ClaimInProgress {
  readonly status: "INPROGRESS";
  /** Random ID of the attempt that took the claim. */
  readonly owner: string;
  /** Time until which no other owner may take the claim, in epoch milliseconds. */
  readonly leaseUntilMs: number;
  /** Time after the lease from which the store may delete the record, in epoch seconds. */
  readonly expiresAt: number;
  readonly fingerprint?: string | undefined;
  readonly generation?: string | undefined;
  /** Hash of the durable execution that took the claim. Its next invocation continues the claim. */
  readonly execution?: string | undefined;
}

export interface CompletedClaim {
  readonly status: "COMPLETED";
  readonly owner: string;
  /** Time from which a repeat does the work again, in epoch seconds. */
  readonly expiresAt: number;
  readonly fingerprint?: string | undefined;
  readonly generation?: string | undefined;
  readonly result?: StoredResult | undefined;
  readonly execution?: string | undefined;
}

export type ClaimRecord = ClaimInProgress | CompletedClaim;

/** Stored result of the work: in the record if small, otherwise in separate parts. */
export interface StoredResult {
  readonly data?: Uint8Array;
  /** Number of parts, if the data is not in the record. */
  readonly parts?: number;
  /** Result as a DynamoDB value, in a record that Powertools' idempotency layer also reads. */
  readonly value?: unknown;
  /** Reason why the result could not be stored although the work is done. */
  readonly unkept?: string;
}

/**
 * State of a claim for an owner that wants to take it:
 *
 * | record | verdict |
 * |---|---|
 * | none | `free` |
 * | in progress, same owner | `mine`: an earlier call took it, but its response was lost |
 * | in progress, lease (plus 2 s of skew) still valid | `running` |
 * | in progress, lease expired | `free` |
 * | completed, not expired | `done` |
 * | completed, expired | `free` |
 */
export type Verdict = "free" | "mine" | "running" | "done";

/** Returns the state of a record for `owner` at `nowMs`. */
export function judge(record: ClaimRecord | undefined, owner: string, nowMs: number): Verdict {
  if (record === undefined) return "free";
  if (record.status === "COMPLETED") return record.expiresAt * 1000 > nowMs ? "done" : "free";
  if (record.owner === owner) return "mine";
  return record.leaseUntilMs + skewMs >= nowMs ? "running" : "free";
}

export interface TakingOptions {
  /** Latest end of the owner's process, in epoch milliseconds. No lease extends beyond it. */
  readonly deadlineMs?: number | undefined;
  readonly fingerprint?: string | undefined;
  /**
   * ID that distinguishes this work from earlier work under the same key, also in derived IDs. A
   * run that takes over an incomplete claim inherits its generation; other runs get a new one.
   * Absent for keys that are never reused, and in records of older versions.
   */
  readonly generation?: string | undefined;
  readonly execution?: string | undefined;
  /** Fixed lease, in milliseconds. It is not renewed, and may outlast the process. */
  readonly heldMs?: number | undefined;
}

export function takenClaim(
  owner: string,
  nowMs: number,
  { deadlineMs, fingerprint, generation, execution, heldMs }: TakingOptions = {},
): ClaimInProgress {
  const leaseUntilMs = heldMs === undefined ? leaseEnd(nowMs, deadlineMs) : nowMs + heldMs;
  const expiresAt = unfinishedExpiry(leaseUntilMs, generation);
  return {
    status: "INPROGRESS",
    owner,
    leaseUntilMs,
    expiresAt,
    fingerprint,
    generation,
    execution,
  };
}

/**
 * Returns when the store may delete the claim of an incomplete run, in epoch seconds. A generation
 * is kept for 14 days after the lease, because a repeat of the run must find it.
 */
export function unfinishedExpiry(leaseUntilMs: number, generation: string | undefined): number {
  return expiry(leaseUntilMs, generation === undefined ? defaultRetentionMs : longestMessageMs);
}

export interface CompletionOptions {
  readonly result?: StoredResult | undefined;
  readonly fingerprint?: string | undefined;
  readonly generation?: string | undefined;
  readonly execution?: string | undefined;
  /** Retention, in milliseconds. Default {@link defaultRetentionMs}. */
  readonly retentionMs?: number;
}

export function completedClaim(
  owner: string,
  nowMs: number,
  { result, fingerprint, generation, execution, retentionMs }: CompletionOptions = {},
): CompletedClaim {
  return {
    status: "COMPLETED",
    owner,
    expiresAt: expiry(nowMs, retentionMs),
    fingerprint,
    generation,
    result,
    execution,
  };
}

export function leaseEnd(nowMs: number, deadlineMs: number | undefined): number {
  return Math.min(nowMs + leaseMs, deadlineMs ?? Number.POSITIVE_INFINITY);
}

/** Returns the expiry of a record whose retention starts at `endMs`, in epoch seconds. */
export function expiry(endMs: number, retentionMs: number = defaultRetentionMs): number {
  return Math.ceil((endMs + retentionMs) / 1000);
}
