import { expect, test } from "vitest";
import { recordedMetrics } from "../../../test/support/recorded-metrics.ts";
import { countEnd, countReplayed, countTaken } from "./claim-counts.ts";
import type { Taken } from "./claims.ts";
import type { ClaimEnd, CommitEnd, WorkEnd } from "./settlement.ts";

const counted = (work: (metrics: ReturnType<typeof recordedMetrics>["metrics"]) => void) => {
  const { metrics, sums } = recordedMetrics();
  work(metrics);
  return Object.keys(sums()).map((series) => series.replace("keelson.claims ", ""));
};

test.each<[Taken["kind"], boolean | undefined, string[]]>([
  ["taken", false, ["write taken"]],
  ["taken", true, ["write taken", "write waited"]],
  ["done", false, ["write replayed"]],
  ["done", true, ["write replayed", "write waited"]],
  ["running", undefined, ["write conflicted"]],
])("a claim that is %s (waited: %s) counts as %j", (kind, hasWaited, expected) => {
  // Safe: no other member is looked at.
  const taken = { kind, hasWaited } as Exclude<Taken, { kind: "other" }>;

  expect(counted((metrics) => countTaken(metrics, "write", taken))).toEqual(expected);
});

test.each<[WorkEnd, CommitEnd, ClaimEnd, string[]]>([
  ["answered", "none", "completed", []],
  ["answered", "committed", "ours", []],
  ["threw", "none", "ours", []],
  ["threw", "none", "lost", ["message fenced"]],
  ["answered", "none", "fenced", ["message fenced"]],
  ["answered", "unknown", "ours", ["message unknown"]],
  ["answered", "none", "unrecorded", ["message unknown"]],
  ["answered", "none", "unknown", ["message unknown"]],
  ["timed out", "none", "ours", ["message unknown"]],
  ["timed out", "committed", "ours", []],
])("work that %s, with commit %s and claim %s, counts as %j", (work, commit, claim, expected) => {
  expect(
    counted((metrics) => countEnd(metrics, "message", { work, commit, claim, isLast: true })),
  ).toEqual(expected);
});

test("does not count a run as unknown before its last step", () => {
  const unknown = { work: "answered", commit: "unknown", claim: "ours" } as const;

  expect(counted((metrics) => countEnd(metrics, "write", { ...unknown, isLast: false }))).toEqual(
    [],
  );
});

test("counts an answer without a claim as a write", () => {
  expect(counted((metrics) => countReplayed(metrics, "waited"))).toEqual(["write waited"]);
});
