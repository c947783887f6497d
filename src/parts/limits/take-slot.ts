import type { Clock } from "../../base/process/clock.ts";
import {
  type ClaimInProgress,
  type ClaimKey,
  type ClaimRecord,
  expiry,
  judge,
  longestMessageMs,
  takenClaim,
  unfinishedExpiry,
} from "../once/claim.ts";
import type { ClaimStore } from "../once/claim-store.ts";
import type { SlotHolder, SlotPlace, SlotStore } from "./slot.ts";

export interface SlotParts {
  readonly store: SlotStore;
  readonly claims: Pick<ClaimStore, "read" | "take" | "release" | "vacate">;
  readonly clock: Clock;
  readonly random?: () => number;
  readonly newOwner?: () => string;
}

/** Times that others may take the last slot between a read and a write, before a run waits. */
const maxTries = 5;
/** Claims that a run reads to find a free slot. Others find the rest. */
const maxChecked = 25;

/**
 * Takes one of `most` slots for a run that holds its claim. Returns `false` if all are held.
 *
 * A holder counts until its run removes it, or its claim is known to be over. A claim whose lease
 * has expired is first taken away from its run, so that a stalled run which wakes up cannot commit.
 *
 * The store counts the holders when it adds one. So concurrent runs do not hinder each other, and
 * a holder that has ended can be removed at any time, since its owner never returns.
 */
export async function takeSlot(
  parts: SlotParts,
  place: SlotPlace,
  most: number,
  holder: SlotHolder,
): Promise<boolean> {
  const { store, clock } = parts;
  for (let tries = 0; tries < maxTries; tries += 1) {
    const row = await store.read(place);
    const holders = row ?? [];
    // An earlier call added it, but its response was lost.
    if (holders.some(({ owner }) => owner === holder.owner)) return true;
    const ended = holders.length < most ? [] : await endedOf(parts, holders);
    if (ended.length > 0) await store.remove(place, ended);
    if (holders.length - ended.length >= most) return false;
    const expiresAt = expiry(clock.now(), longestMessageMs);
    if (await store.add(place, { holder, most, hasRow: row !== undefined, expiresAt })) return true;
  }
  return false;
}

/** Returns the holders whose claims are still held. Unlike {@link takeSlot}, only reads. */
export async function heldOf(
  { claims, clock }: SlotParts,
  holders: readonly SlotHolder[],
): Promise<readonly SlotHolder[]> {
  const running = await Promise.all(
    holders.map(async ({ key, owner }) => {
      const record = await claims.read(key);
      return isOf(record, owner) && judge(record, "", clock.now()) === "running";
    }),
  );
  return holders.filter((_, index) => running[index]);
}

async function endedOf(parts: SlotParts, holders: readonly SlotHolder[]): Promise<string[]> {
  const checked = sampleOf(holders, parts.random ?? Math.random);
  const found = await Promise.all(checked.map((holder) => hasEnded(parts, holder)));
  return checked.filter((_, index) => found[index]).map(({ owner }) => owner);
}

function sampleOf(holders: readonly SlotHolder[], random: () => number): readonly SlotHolder[] {
  if (holders.length <= maxChecked) return holders;
  const start = Math.floor(random() * holders.length);
  return [...holders, ...holders].slice(start, start + maxChecked);
}

async function hasEnded(parts: SlotParts, { key, owner }: SlotHolder): Promise<boolean> {
  const { claims, clock } = parts;
  const record = await claims.read(key);
  if (!isOf(record, owner)) return true;
  if (judge(record, "", clock.now()) === "running") return false;
  // The claim's row keeps its tenant, for exports and erasures.
  return fenced(parts, { ...key, tenantId: record.tenantId }, record);
}

function isOf(record: ClaimRecord | undefined, owner: string): record is ClaimInProgress {
  return record?.status === "INPROGRESS" && record.owner === owner;
}

/** Takes an expired claim away from its run. Returns `false` if the run has renewed it. */
async function fenced(
  { claims, clock, newOwner = () => crypto.randomUUID() }: SlotParts,
  key: ClaimKey,
  { owner, generation, fingerprint }: ClaimInProgress,
): Promise<boolean> {
  const nowMs = clock.now();
  const own = newOwner();
  const claim = takenClaim(own, nowMs, { generation, fingerprint });
  const other = await claims.take(key, claim, nowMs);
  if (other?.status === "INPROGRESS" && other.owner === owner) return false;
  if (other !== undefined && other.owner !== own) return true;
  // If this fails, the run can be repeated once the lease just taken has expired.
  const released =
    generation === undefined
      ? claims.release(key, own)
      : claims.vacate(key, own, unfinishedExpiry(nowMs, generation));
  await released.catch(() => undefined);
  return true;
}
