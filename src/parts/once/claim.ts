import { hash } from "node:crypto";

/** How long a completed claim is retained (specification 3.2), in milliseconds. */
export const defaultRetentionMs = 300_000;
/** The longest time that SQS keeps a message, in milliseconds: a run that did not complete is found again for as long. */
export const longestMessageMs = 14 * 24 * 3_600_000;
/** How much of its retention a completed claim of a message may lose before it is extended, in milliseconds. */
export const extensionSlackMs = 3_600_000;
/** The least time that a completed claim of a message is retained, in milliseconds: never less than a day after its last delivery. */
const leastMessageRetentionMs = 24 * 3_600_000 + extensionSlackMs;

/**
 * How long the completed claim of a message is retained, in milliseconds: half as long again as its queue may take for all
 * its deliveries.
 *
 * @param redeliveryMs - how long the queue may take, in milliseconds.
 */
export function messageRetentionMs(redeliveryMs: number): number {
  return Math.max(leastMessageRetentionMs, Math.ceil(redeliveryMs * 1.5));
}

/** How long a claim in progress is held without being renewed, in milliseconds. */
export const leaseMs = 30_000;
/** How far the clocks of two processes may differ, in milliseconds: a lease is over only so much later. */
export const skewMs = 2_000;

/** Where a claim is stored. */
export interface ClaimKey {
  readonly partition: string;
  /** `dedup:<id>` (specification 3.2). */
  readonly sort: string;
  /** Whose it is, beside the key: what it is found by when a tenant's rows are asked for. */
  readonly tenantId?: string | undefined;
}

/**
 * The key of a claim: the namespace hashed, each part after its length, so that no two
 * namespaces meet whatever their parts contain; the ID as the specification has it (3.2).
 */
export function claimKey(namespace: readonly string[], id: string, tenantId?: string): ClaimKey {
  const parts = namespace.map((part) => `${Buffer.byteLength(part)}:${part}`).join("");
  return { partition: hash("sha256", parts, "base64url"), sort: `dedup:${shortId(id)}`, tenantId };
}

/** The longest ID that stands in a sort key as it is; a longer one is replaced by its hash. */
const longestId = 512;

function shortId(id: string): string {
  return id.length <= longestId ? id : `sha256:${hash("sha256", id, "base64url")}`;
}

/** A key as a text, for maps within a process. */
export function keyText({ partition, sort }: ClaimKey): string {
  return `${partition} ${sort}`;
}

/** A claim whose owner is working. */
export interface ClaimInProgress {
  readonly status: "INPROGRESS";
  /** Who holds it: random, another one for each attempt. */
  readonly owner: string;
  /** Until when no other owner may take it, in milliseconds since the epoch. */
  readonly leaseUntilMs: number;
  /** When the store may forget it, in seconds since the epoch: always after the lease. */
  readonly expiresAt: number;
  /** What the work was claimed for, where that has to be compared. */
  readonly fingerprint?: string | undefined;
  /** See {@link TakingOptions.generation}. */
  readonly generation?: string | undefined;
  /** The durable execution that claimed it, hashed: its next invocation goes on with the claim. */
  readonly execution?: string | undefined;
}

/** A claim whose work is done. */
export interface CompletedClaim {
  readonly status: "COMPLETED";
  readonly owner: string;
  /** From when on the work may be done again, in seconds since the epoch. */
  readonly expiresAt: number;
  readonly fingerprint?: string | undefined;
  readonly generation?: string | undefined;
  /** What came of the work. */
  readonly result?: StoredResult | undefined;
  readonly execution?: string | undefined;
}

/** A claim as it is stored. */
export type ClaimRecord = ClaimInProgress | CompletedClaim;

/** What came of the work, as it is stored: small ones in the record, large ones in parts beside it. */
export interface StoredResult {
  readonly data?: Uint8Array;
  /** How many parts hold the data, where the record does not. */
  readonly parts?: number;
  /** The result as a value of the store, in a record that Powertools' own layer reads too. */
  readonly value?: unknown;
  /** Why the result could not be stored, though the work is done. */
  readonly unkept?: string;
}

/**
 * How a claim looks to an owner that wants it:
 *
 * | the record | is |
 * |---|---|
 * | there is none | `free` |
 * | in progress, the owner's | `mine`: an earlier attempt to take it arrived, and its answer did not |
 * | in progress, leased (and 2 s of skew) | `running` |
 * | in progress, the lease over | `free` |
 * | completed, not expired | `done` |
 * | completed, expired | `free` |
 */
export type Verdict = "free" | "mine" | "running" | "done";

/** Judges a record for `owner` at `nowMs`. */
export function judge(record: ClaimRecord | undefined, owner: string, nowMs: number): Verdict {
  if (record === undefined) return "free";
  if (record.status === "COMPLETED") return record.expiresAt * 1000 > nowMs ? "done" : "free";
  if (record.owner === owner) return "mine";
  return record.leaseUntilMs + skewMs >= nowMs ? "running" : "free";
}

/** What a claim is taken with. */
export interface TakingOptions {
  /** When the owner will be gone in any case: no lease goes beyond. */
  readonly deadlineMs?: number | undefined;
  readonly fingerprint?: string | undefined;
  /**
   * Tells the work from other work that had the same key before: part of every ID that is derived from the claim. A claim
   * that is free gets a new one, a run that takes over one in progress inherits it. Absent from records of versions that had
   * none, and from claims whose key is never used again.
   */
  readonly generation?: string | undefined;
  readonly execution?: string | undefined;
  /** How long it is held, whatever becomes of the process: it is not renewed then. */
  readonly heldMs?: number | undefined;
}

/** A claim as its owner takes it. */
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
 * When the store may forget a claim whose run did not complete, in seconds since the epoch. One with a generation has to be
 * found for as long as its run may be repeated.
 */
export function unfinishedExpiry(leaseUntilMs: number, generation: string | undefined): number {
  return expiry(leaseUntilMs, generation === undefined ? defaultRetentionMs : longestMessageMs);
}

/** What a claim is completed with. */
export interface CompletionOptions {
  readonly result?: StoredResult | undefined;
  readonly fingerprint?: string | undefined;
  readonly generation?: string | undefined;
  readonly execution?: string | undefined;
  /** How long it is retained, in milliseconds. Default {@link defaultRetentionMs}. */
  readonly retentionMs?: number;
}

/** The claim once its work is done. */
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

/** Until when a lease that is taken or renewed at `nowMs` lasts. */
export function leaseEnd(nowMs: number, deadlineMs: number | undefined): number {
  return Math.min(nowMs + leaseMs, deadlineMs ?? Number.POSITIVE_INFINITY);
}

/** When a record that ended at `endMs` expires, in seconds since the epoch. */
export function expiry(endMs: number, retentionMs: number = defaultRetentionMs): number {
  return Math.ceil((endMs + retentionMs) / 1000);
}
