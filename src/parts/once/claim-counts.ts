import type { MetricLabelsOf } from "../../base/metrics/metric-list.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { ClaimEnd, CommitEnd, RunKind, WorkEnd } from "./settlement.ts";

const outcomes = { taken: "taken", done: "replayed", running: "conflicted" } as const;

export function countTaken(
  metrics: Metrics,
  kind: RunKind,
  taken: { readonly kind: keyof typeof outcomes; readonly hasWaited?: boolean },
): void {
  count(metrics, kind, outcomes[taken.kind]);
  if (taken.hasWaited) count(metrics, kind, "waited");
}

/** Counts a write without a claim: this process had its answer, or was running a duplicate. */
export function countReplayed(
  metrics: Metrics,
  outcome: "replayed" | "waited" | "conflicted",
): void {
  count(metrics, "write", outcome);
}

interface Standing {
  readonly work: WorkEnd;
  readonly commit: CommitEnd;
  readonly claim: ClaimEnd;
  readonly isLast: boolean;
}

/** Counts a claim that another run has taken over, and one whose work has an unknown outcome. */
export function countEnd(
  metrics: Metrics,
  kind: RunKind,
  { work, commit, claim, isLast }: Standing,
): void {
  if (claim === "fenced" || claim === "lost") count(metrics, kind, "fenced");
  const isUnknown = claim === "unrecorded" || claim === "unknown" || commit === "unknown";
  if (isLast && (isUnknown || (work === "timed out" && commit === "none")))
    count(metrics, kind, "unknown");
}

function count(
  metrics: Metrics,
  kind: RunKind,
  outcome: MetricLabelsOf<"keelson.claims">["keelson.outcome"],
): void {
  metrics.record("keelson.claims", 1, { "keelson.kind": kind, "keelson.outcome": outcome });
}
