import { FrameworkError } from "../../base/errors/errors.ts";
import { loadAnswer } from "./answer.ts";
import { type CompletedClaim, expiry, extensionSlackMs } from "./claim.ts";
import { countTaken } from "./claim-counts.ts";
import type { ClaimStore } from "./claim-store.ts";
import type { OnceClaim, OnceParts, Run, RunOutcome } from "./claimed-run.ts";
import type { Taken } from "./claims.ts";

export async function take<Result>(
  parts: OnceParts,
  { signal, log, logPrefix }: Run<Result>,
  claim: OnceClaim,
): Promise<Exclude<Taken, { kind: "other" }>> {
  const { kind, key, fingerprint, comparesFingerprint = false, deadlineMs, retentionMs } = claim;
  const hasGeneration = claim.hasReusableKey ?? kind === "write";
  const waitMs = kind === "write" ? parts.waitMs : 0;
  const stop = signal === undefined ? [parts.draining] : [signal, parts.draining];
  const options = {
    fingerprint,
    comparesFingerprint,
    deadlineMs,
    retentionMs,
    waitMs,
    stop,
    hasGeneration,
  };
  const taken = await parts.claims.take(key, options);
  if (taken.kind === "other") throw keyReused();
  if (parts.metrics !== undefined) countTaken(parts.metrics, kind, taken);
  if (kind === "write" && taken.kind !== "done") {
    if (taken.kind === "taken") log.debug(`${logPrefix}.taken`, { waited: taken.hasWaited });
    else
      log.debug(`${logPrefix}.conflicted`, { leaseUntil: new Date(taken.untilMs).toISOString() });
  }
  return taken;
}

export function keyReused(): FrameworkError {
  return new FrameworkError(
    "idempotency_key_reused",
    "The Idempotency-Key was used for another request; send a new one",
  );
}

export function inProgress(): FrameworkError {
  return new FrameworkError(
    "request_in_progress",
    "The same request is being processed; try again later",
    {
      headers: { "retry-after": "1" },
    },
  );
}

export async function replay<Result>(
  { store, clock, remember }: OnceParts,
  run: Run<Result>,
  claim: OnceClaim,
  { record, hasWaited }: { readonly record: CompletedClaim; readonly hasWaited: boolean },
): Promise<Extract<RunOutcome<Result>, { kind: "replayed" }>> {
  if (claim.kind === "message") {
    await extend(store, claim, record, clock.now());
    return { kind: "replayed", answer: undefined };
  }
  const answer = await loadAnswer(store, claim.key, record, claim.cipher);
  run.log.debug(`${run.logPrefix}.replayed`, { waited: hasWaited });
  remember(run, answer, record.expiresAt);
  return { kind: "replayed", answer };
}

/** Restarts the retention of the claim, because the message may be redelivered again. */
async function extend(
  store: ClaimStore,
  claim: OnceClaim,
  record: CompletedClaim,
  nowMs: number,
): Promise<void> {
  const { key, retentionMs, hasReusableKey = false } = claim;
  // Otherwise, a delivery repeated every hour under a reusable key would extend the claim each time
  // and never be sent again.
  if (hasReusableKey) return;
  const expiresAt = expiry(nowMs, retentionMs);
  // Most duplicates arrive within seconds, so they cost no write.
  if ((expiresAt - record.expiresAt) * 1000 <= extensionSlackMs) return;
  // If extending fails, the claim still lasts for its original retention.
  await store.extend(key, record.owner, expiresAt).catch(() => undefined);
}
