import { describe, expect, test } from "vitest";
import {
  type ClaimEnd,
  type CommitEnd,
  type RunKind,
  settlementOf,
  type WorkEnd,
} from "./settlement.ts";

const kinds: readonly RunKind[] = ["write", "message"];
const failures: readonly WorkEnd[] = ["threw", "stopped", "timed out"];
const works: readonly WorkEnd[] = ["answered", "refused", ...failures];
const commits: readonly CommitEnd[] = ["none", "committed", "unknown"];
const held: readonly ClaimEnd[] = ["ours", "lost"];

const end = (...facts: Parameters<typeof settlementOf>) => {
  const { record, outcome, line } = settlementOf(...facts);
  return [record, outcome, line === undefined ? "" : `${line.level} ${line.message}`];
};

describe("a run", () => {
  test("that has committed answers with its commit, whatever happens later, and keeps its record", () => {
    for (const kind of kinds)
      for (const work of works)
        for (const claim of ["unclaimed", ...held] as const) {
          const line = failures.includes(work) ? "error threw_after_commit" : "";
          expect(end(kind, work, "committed", claim), `${kind} ${work} ${claim}`).toEqual([
            "keep",
            "committed",
            line,
          ]);
        }
  });

  test("without a claim answers with its own outcome, unless it has committed", () => {
    for (const kind of kinds)
      for (const work of works)
        for (const commit of ["none", "unknown"] as const)
          expect(end(kind, work, commit, "unclaimed"), `${kind} ${work} ${commit}`).toEqual([
            "keep",
            "own",
            "",
          ]);
  });

  test("that did its work completes its claim", () => {
    for (const claim of held) {
      expect(end("write", "answered", "none", claim)).toEqual(["complete", "", ""]);
      expect(end("message", "answered", "none", claim)).toEqual(["complete", "", ""]);
      expect(end("message", "answered", "unknown", claim)).toEqual(["complete", "", ""]);
    }
  });

  test("whose claim is completed answers with its own outcome", () => {
    for (const kind of kinds)
      expect(end(kind, "answered", "none", "completed")).toEqual(["keep", "own", ""]);
  });
});

describe("a write", () => {
  test("with a commit of unknown outcome keeps its claim until the lease ends, and logs it", () => {
    for (const work of works)
      for (const claim of held)
        expect(end("write", work, "unknown", claim)).toEqual([
          "keep",
          "own",
          "error commit_uncertain",
        ]);
  });

  test("that was refused or has failed releases its claim", () => {
    for (const claim of held)
      for (const work of ["refused", "stopped"] as const)
        expect(end("write", work, "none", claim)).toEqual(["release", "own", ""]);
    expect(end("write", "threw", "none", "ours")).toEqual(["release", "own", ""]);
  });

  test("that timed out keeps its claim until the lease ends, because its progress is unknown", () => {
    for (const claim of held)
      expect(end("write", "timed out", "none", claim)).toEqual(["keep", "own", ""]);
  });

  test("that failed after another run took over looks for the other run's answer", () => {
    expect(end("write", "threw", "none", "lost")).toEqual(["retake", "", ""]);
  });

  test("that was fenced answers with the other run's answer, or with its own if there is none", () => {
    expect(end("write", "answered", "none", "fenced")).toEqual(["retake", "", "warn fenced"]);
    for (const work of ["answered", "threw"] as const) {
      expect(end("write", work, "none", "theirs")).toEqual(["keep", "theirs", ""]);
      expect(end("write", work, "none", "unknown")).toEqual(["keep", "own", "warn lost"]);
    }
  });

  test("whose claim cannot be completed is answered anyway", () => {
    expect(end("write", "answered", "none", "unrecorded")).toEqual([
      "keep",
      "own",
      "error completion_failed",
    ]);
  });
});

describe("a message", () => {
  test("that failed releases its claim, unless it is lost or its commit is uncertain", () => {
    for (const work of failures) {
      expect(end("message", work, "none", "ours")).toEqual(["release", "own", ""]);
      expect(end("message", work, "none", "lost")).toEqual(["keep", "own", ""]);
      for (const claim of held)
        expect(end("message", work, "unknown", claim)).toEqual(["keep", "own", ""]);
    }
    expect(end("message", "refused", "none", "ours")).toEqual(["release", "own", ""]);
  });

  test("that was fenced is redelivered", () => {
    for (const commit of ["none", "unknown"] as const)
      expect(end("message", "answered", commit, "fenced")).toEqual([
        "keep",
        "redeliver",
        "warn fenced",
      ]);
  });

  test("whose claim cannot be completed fails, so that it is redelivered", () => {
    for (const commit of ["none", "unknown"] as const)
      expect(end("message", "answered", commit, "unrecorded")).toEqual(["keep", "unrecorded", ""]);
  });
});

test("every end of a run has a row, and a row without an outcome completes or retakes the claim", () => {
  const claims: readonly ClaimEnd[] = [
    "unclaimed",
    ...held,
    "completed",
    "fenced",
    "unrecorded",
    "theirs",
    "unknown",
  ];
  for (const kind of kinds)
    for (const work of works)
      for (const commit of commits)
        for (const claim of claims) {
          const { record, outcome } = settlementOf(kind, work, commit, claim);
          expect(outcome === "", `${kind} ${work} ${commit} ${claim}`).toBe(
            record === "complete" || record === "retake",
          );
        }
});
