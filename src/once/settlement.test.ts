import { describe, expect, test } from "vitest";
import { type ClaimEnd, type CommitEnd, type RunKind, settlementOf, type WorkEnd } from "./settlement.ts";

const kinds: readonly RunKind[] = ["write", "message"];
const failures: readonly WorkEnd[] = ["threw", "stopped", "timed out"];
const works: readonly WorkEnd[] = ["answered", "refused", ...failures];
const commits: readonly CommitEnd[] = ["none", "committed", "unknown"];
const held: readonly ClaimEnd[] = ["ours", "lost"];

const end = (...facts: Parameters<typeof settlementOf>) => {
  const { record, given, line } = settlementOf(...facts);
  return [record, given, line === undefined ? "" : `${line.level} ${line.message}`];
};

describe("a run", () => {
  test("that has committed gives what it committed, whatever came later, and its record is left", () => {
    for (const kind of kinds)
      for (const work of works)
        for (const claim of ["unclaimed", ...held] as const) {
          const line = failures.includes(work) ? "error threw_after_commit" : "";
          expect(end(kind, work, "committed", claim), `${kind} ${work} ${claim}`).toEqual(["leave", "committed", line]);
        }
  });

  test("that nothing claims gives what it came to, where it has not committed", () => {
    for (const kind of kinds)
      for (const work of works)
        for (const commit of ["none", "unknown"] as const)
          expect(end(kind, work, commit, "unclaimed"), `${kind} ${work} ${commit}`).toEqual(["leave", "own", ""]);
  });

  test("that did its work completes its claim", () => {
    for (const claim of held) {
      expect(end("write", "answered", "none", claim)).toEqual(["complete", "", ""]);
      expect(end("message", "answered", "none", claim)).toEqual(["complete", "", ""]);
      expect(end("message", "answered", "unknown", claim)).toEqual(["complete", "", ""]);
    }
  });

  test("whose claim is completed gives what it came to", () => {
    for (const kind of kinds) expect(end(kind, "answered", "none", "completed")).toEqual(["leave", "own", ""]);
  });
});

describe("a write", () => {
  test("with a commit of which nobody knows leaves its claim until the lease ends, and says so", () => {
    for (const work of works)
      for (const claim of held) expect(end("write", work, "unknown", claim)).toEqual(["leave", "own", "error commit_uncertain"]);
  });

  test("that was refused or has failed gives its claim back", () => {
    for (const claim of held)
      for (const work of ["refused", "stopped"] as const)
        expect(end("write", work, "none", claim)).toEqual(["release", "own", ""]);
    expect(end("write", "threw", "none", "ours")).toEqual(["release", "own", ""]);
  });

  test("whose time was over leaves its claim until the lease ends: nobody knows how far it came", () => {
    for (const claim of held) expect(end("write", "timed out", "none", claim)).toEqual(["leave", "own", ""]);
  });

  test("that failed after another took over looks for the other's answer", () => {
    expect(end("write", "threw", "none", "lost")).toEqual(["take again", "", ""]);
  });

  test("that another has overtaken gives the other's answer, or its own where there is none", () => {
    expect(end("write", "answered", "none", "fenced")).toEqual(["take again", "", "warn fenced"]);
    for (const work of ["answered", "threw"] as const) {
      expect(end("write", work, "none", "theirs")).toEqual(["leave", "theirs", ""]);
      expect(end("write", work, "none", "unclear")).toEqual(["leave", "own", "warn lost"]);
    }
  });

  test("whose claim cannot be completed is answered all the same", () => {
    expect(end("write", "answered", "none", "not noted")).toEqual(["leave", "own", "error completion_failed"]);
  });
});

describe("a message", () => {
  test("that failed gives its claim back, unless nobody knows whether it is its own or was written", () => {
    for (const work of failures) {
      expect(end("message", work, "none", "ours")).toEqual(["release", "own", ""]);
      expect(end("message", work, "none", "lost")).toEqual(["leave", "own", ""]);
      for (const claim of held) expect(end("message", work, "unknown", claim)).toEqual(["leave", "own", ""]);
    }
    expect(end("message", "refused", "none", "ours")).toEqual(["release", "own", ""]);
  });

  test("that another has taken over comes again", () => {
    for (const commit of ["none", "unknown"] as const)
      expect(end("message", "answered", commit, "fenced")).toEqual(["leave", "again", "warn fenced"]);
  });

  test("whose claim cannot be completed fails, so that it comes again", () => {
    for (const commit of ["none", "unknown"] as const)
      expect(end("message", "answered", commit, "not noted")).toEqual(["leave", "not noted", ""]);
  });
});

test("no end of a run is without a row, and none that gives nothing has nothing left to do", () => {
  const claims: readonly ClaimEnd[] = ["unclaimed", ...held, "completed", "fenced", "not noted", "theirs", "unclear"];
  for (const kind of kinds)
    for (const work of works)
      for (const commit of commits)
        for (const claim of claims) {
          const { record, given } = settlementOf(kind, work, commit, claim);
          expect(given === "", `${kind} ${work} ${commit} ${claim}`).toBe(record === "complete" || record === "take again");
        }
});
