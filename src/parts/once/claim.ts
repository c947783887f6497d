import { hash } from "node:crypto";

/** Default retention of a completed claim (specification 3.2), in milliseconds. */
export const defaultRetentionMs = 300_000;
/** Longest time that SQS keeps a message, in milliseconds. */
export const longestMessageMs = 14 * 24 * 3_600_000;
/** Smallest extension of a message's completed claim that is worth a write, in milliseconds. */
export const extensionSlackMs = 3_600_000;
/** Least retention from the last delivery, in milliseconds, even if that has not extended the claim. */
const dayMs = 24 * 3_600_000;

/**
 * Returns the retention of a message's completed claim, in milliseconds.
 * @param redeliveryMs - longest time from first to last delivery, in milliseconds.
 * @param hasReusableKey - whether other work may reuse the key, so that the claim is never extended.
 */
export function messageRetentionMs(redeliveryMs: number, hasReusableKey = false): number {
  return hasReusableKey
    ? Math.max(dayMs, redeliveryMs)
    : Math.max(dayMs + extensionSlackMs, Math.ceil(redeliveryMs * 1.5));
}

/** Length of a lease from its last renewal, in milliseconds. */
export const leaseMs = 30_000;
/** Clock difference allowed between processes, in milliseconds. Leases expire that much later. */
export const skewMs = 2_000;

export interface ClaimKey {
  readonly partition: string;
  /** Sort key: `dedup:<id>` (specification 3.2). */
  readonly sort: string;
  /** Stored, so that all rows of a tenant can be found. */
  readonly tenantId?: string | undefined;
}

/** Hashes the parts of the namespace with their lengths, so that no two share a partition. */
export function claimKey(namespace: readonly string[], id: string, tenantId?: string): ClaimKey {
  const parts = namespace.map((part) => `${Buffer.byteLength(part)}:${part}`).join("");
  return { partition: hash("sha256", parts, "base64url"), sort: `dedup:${shortId(id)}`, tenantId };
}

/** In bytes. DynamoDB takes sort keys of 1,024, and the parts of a large row add to this one. */
const longestId = 512;

function shortId(id: string): string {
  return Buffer.byteLength(id) <= longestId ? id : `sha256:${hash("sha256", id, "base64url")}`;
}

export function keyText({ partition, sort }: ClaimKey): string {
  return `${partition} ${sort}`;
}

export interface ClaimInProgress {
  readonly status: "INPROGRESS";
  readonly owner: string;
  /** Time until which no other owner may take the claim, in epoch milliseconds. */
  readonly leaseUntilMs: number;
  /** Time after the lease from which the store may delete the record, in epoch seconds. */
  readonly expiresAt: number;
  readonly fingerprint?: string | undefined;
  readonly generation?: string | undefined;
  /** Hash of the durable execution that took the claim, and whose next invocation continues it. */
  readonly execution?: string | undefined;
  /** Of a record that was read: the tenant in its key. */
  readonly tenantId?: string | undefined;
}

export interface CompletedClaim extends Omit<ClaimInProgress, "status" | "leaseUntilMs"> {
  readonly status: "COMPLETED";
  /** Time from which a repeat does the work again, in epoch seconds. */
  readonly expiresAt: number;
  readonly result?: StoredResult | undefined;
}

export type ClaimRecord = ClaimInProgress | CompletedClaim;

/** Result of the work: in the record if small, otherwise in as many separate parts. */
export interface StoredResult {
  readonly data?: Uint8Array;
  readonly parts?: number;
  /** In a record that Powertools' idempotency layer also reads. */
  readonly value?: unknown;
  /** Why the result could not be stored although the work is done. */
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

export function judge(record: ClaimRecord | undefined, owner: string, nowMs: number): Verdict {
  if (record === undefined) return "free";
  if (record.status === "COMPLETED") return record.expiresAt * 1000 > nowMs ? "done" : "free";
  if (record.owner === owner) return "mine";
  return record.leaseUntilMs + skewMs >= nowMs ? "running" : "free";
}

export interface TakingOptions {
  /** End of the owner's process, in epoch milliseconds. No lease extends beyond it. */
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

/** In epoch seconds. A repeat of the run must find its generation, for 14 days after the lease. */
export function unfinishedExpiry(leaseUntilMs: number, generation: string | undefined): number {
  return expiry(leaseUntilMs, generation === undefined ? defaultRetentionMs : longestMessageMs);
}

export interface CompletionOptions
  extends Pick<CompletedClaim, "result" | "fingerprint" | "generation" | "execution"> {
  /** In milliseconds. Default {@link defaultRetentionMs}. */
  readonly retentionMs?: number;
}

export function completedClaim(
  owner: string,
  nowMs: number,
  { retentionMs, result, fingerprint, generation, execution }: CompletionOptions = {},
): CompletedClaim {
  const expiresAt = expiry(nowMs, retentionMs);
  return { status: "COMPLETED", owner, expiresAt, result, fingerprint, generation, execution };
}

export function leaseEnd(nowMs: number, deadlineMs: number | undefined): number {
  return Math.min(nowMs + leaseMs, deadlineMs ?? Number.POSITIVE_INFINITY);
}

/** Returns the expiry of a record whose retention starts at `endMs`, in epoch seconds. */
export function expiry(endMs: number, retentionMs: number = defaultRetentionMs): number {
  return Math.ceil((endMs + retentionMs) / 1000);
}
