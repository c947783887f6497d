import { hash } from "node:crypto";

/** Default retention of a completed claim (specification 3.2), in milliseconds. */
export const defaultRetentionMs = 300_000;
/**
 * Longest time SQS keeps a message, in milliseconds. The record of an incomplete run must exist for
 * as long.
 */
export const longestMessageMs = 14 * 24 * 3_600_000;
/**
 * Retention that a completed claim of a message may lose before it is extended, in milliseconds.
 */
export const extensionSlackMs = 3_600_000;
/**
 * Minimum retention of a completed claim of a message, in milliseconds. Ensures a full day after
 * the last delivery.
 */
const leastMessageRetentionMs = 24 * 3_600_000 + extensionSlackMs;

/**
 * Returns the retention of a message's completed claim, in milliseconds: 1.5 times the longest
 * redelivery time of its queue.
 *
 * @param redeliveryMs - longest time the queue may take for all deliveries, in milliseconds.
 */
export function messageRetentionMs(redeliveryMs: number): number {
  return Math.max(leastMessageRetentionMs, Math.ceil(redeliveryMs * 1.5));
}

/** Lease of a claim in progress that is not renewed, in milliseconds. */
export const leaseMs = 30_000;
/**
 * Allowed difference between the clocks of two processes, in milliseconds. A lease counts as
 * expired only after this extra time.
 */
export const skewMs = 2_000;

export interface ClaimKey {
  readonly partition: string;
  /** `dedup:<id>` (specification 3.2). */
  readonly sort: string;
  /** Tenant of the claim, stored next to the key. Lookups of all rows of a tenant use it. */
  readonly tenantId?: string | undefined;
}

/**
 * Builds the key of a claim. Hashes the parts of the namespace, each after its length, so that no
 * two namespaces collide regardless of their parts. The ID has the form of the specification (3.2).
 */
export function claimKey(namespace: readonly string[], id: string, tenantId?: string): ClaimKey {
  const parts = namespace.map((part) => `${Buffer.byteLength(part)}:${part}`).join("");
  return { partition: hash("sha256", parts, "base64url"), sort: `dedup:${shortId(id)}`, tenantId };
}

/** Longest ID that a sort key contains verbatim. A longer ID is hashed. */
const longestId = 512;

function shortId(id: string): string {
  return id.length <= longestId ? id : `sha256:${hash("sha256", id, "base64url")}`;
}

/** Returns a key as a string, for maps within a process. */
export function keyText({ partition, sort }: ClaimKey): string {
  return `${partition} ${sort}`;
}

export interface ClaimInProgress {
  readonly status: "INPROGRESS";
  /** Random, and different for each attempt. */
  readonly owner: string;
  /** Time until which no other owner may take the claim, in milliseconds since the epoch. */
  readonly leaseUntilMs: number;
  /**
   * Time from which the store may delete the record, in seconds since the epoch. Always after the
   * lease.
   */
  readonly expiresAt: number;
  readonly fingerprint?: string | undefined;
  /** See {@link TakingOptions.generation}. */
  readonly generation?: string | undefined;
  /**
   * Hash of the durable execution that took the claim. Its next invocation continues with the
   * claim.
   */
  readonly execution?: string | undefined;
}

export interface CompletedClaim {
  readonly status: "COMPLETED";
  readonly owner: string;
  /** Time from which the work may be done again, in seconds since the epoch. */
  readonly expiresAt: number;
  readonly fingerprint?: string | undefined;
  readonly generation?: string | undefined;
  readonly result?: StoredResult | undefined;
  readonly execution?: string | undefined;
}

export type ClaimRecord = ClaimInProgress | CompletedClaim;

/** Stored result of the work. A small result is in the record, a large one in separate parts. */
export interface StoredResult {
  readonly data?: Uint8Array;
  /** Number of parts, if the data is not in the record. */
  readonly parts?: number;
  /** Result as a value of the store, in a record that Powertools' idempotency layer also reads. */
  readonly value?: unknown;
  /** Reason why the result could not be stored although the work is done. */
  readonly unkept?: string;
}

/**
 * State of a claim from the view of an owner that wants it:
 *
 * | record | verdict |
 * |---|---|
 * | none | `free` |
 * | in progress, same owner | `mine`: an earlier attempt took it, but its response was lost |
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
  /** Time at which the owner's process ends in any case. No lease extends beyond it. */
  readonly deadlineMs?: number | undefined;
  readonly fingerprint?: string | undefined;
  /**
   * Distinguishes the work from earlier work under the same key, and is part of every ID derived
   * from the claim. A free claim gets a new generation. A run that takes over a claim in progress
   * inherits its generation. Absent from records of older versions, and from claims whose key is
   * never reused.
   */
  readonly generation?: string | undefined;
  readonly execution?: string | undefined;
  /** Fixed lease, in milliseconds, which is not renewed and outlives the process. */
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
 * Returns when the store may delete the claim of an incomplete run, in seconds since the epoch. A
 * claim with a generation must exist for as long as its run may be repeated.
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

/** Returns when a record that ended at `endMs` expires, in seconds since the epoch. */
export function expiry(endMs: number, retentionMs: number = defaultRetentionMs): number {
  return Math.ceil((endMs + retentionMs) / 1000);
}
