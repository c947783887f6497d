import fc from "fast-check";
import { expect, test } from "vitest";
import { type ClaimRecord, completedClaim, leaseMs, skewMs, takenClaim } from "./claim.ts";
import {
  defaultKeepMs,
  doneStep,
  type IfUnknown,
  type StepRecord,
  startedStep,
  stepPlace,
  stepStanding,
  stepVerdict,
  undoneStep,
} from "./step.ts";

const nowMs = 1_763_812_800_000;
const keepMs = 60_000;
const records: Record<string, StepRecord> = {
  "mine, started": startedStep("me", nowMs, keepMs),
  "theirs, started": startedStep("them", nowMs, keepMs),
  "mine, done": doneStep("me", nowMs, keepMs, {}),
  "theirs, done": doneStep("them", nowMs, keepMs, {}),
  "mine, not done": undoneStep("me", nowMs, keepMs),
  "theirs, not done": undoneStep("them", nowMs, keepMs),
};

test.each([
  ["none", "refuse", "call"],
  ["none", "retry", "call"],
  ["mine, started", "refuse", "call"],
  ["mine, started", "retry", "call"],
  ["theirs, started", "refuse", "refuse"],
  ["theirs, started", "retry", "call"],
  ["mine, done", "refuse", "give"],
  ["theirs, done", "refuse", "give"],
  ["theirs, done", "retry", "give"],
  ["mine, not done", "refuse", "call"],
  ["theirs, not done", "refuse", "call"],
  ["theirs, not done", "retry", "call"],
] as const)("a step that is %s, with %s: %s", (record, ifUnknown, verdict) => {
  expect(stepVerdict(records[record], "me", ifUnknown, nowMs)).toBe(verdict);
});

test("a step expires at the exact second", () => {
  for (const record of Object.values(records)) {
    expect(record.expiresAt * 1000).toBe(nowMs + keepMs);
    expect(stepVerdict(record, "else", "refuse", nowMs + keepMs)).toBe("call");
    const before = stepVerdict(record, "else", "refuse", nowMs + keepMs - 1);
    expect(before).toBe({ STARTED: "refuse", DONE: "give", NOT_DONE: "call" }[record.status]);
  }
  expect(defaultKeepMs).toBe(1_209_600_000);
});

const none: ClaimRecord | undefined = undefined;
const [mine, theirs] = [takenClaim("me", nowMs), takenClaim("them", nowMs)];
const leaseEndMs = nowMs + leaseMs + skewMs;

test.each([
  ["a run that goes on", mine, nowMs, "running"],
  ["a run at the end of its lease", mine, leaseEndMs, "running"],
  ["a run whose lease is over", mine, leaseEndMs + 1, "unknown"],
  ["a run that was taken over", theirs, nowMs, "unknown"],
  ["a run that was released", none, nowMs, "unknown"],
  ["a run that is completed", completedClaim("me", nowMs), nowMs, "unknown"],
] as const)("a started step of %s: %s", (_what, claim, atMs, standing) => {
  expect(stepStanding(startedStep("me", nowMs, keepMs), claim, atMs)).toBe(standing);
  expect(stepStanding(doneStep("me", nowMs, keepMs, {}), claim, atMs)).toBe("done");
  expect(stepStanding(undoneStep("me", nowMs, keepMs), claim, atMs)).toBe("not done");
});

test("a step has its own partition, and the tenant of its run", () => {
  expect(stepPlace("k1", "acme")).toEqual({ partition: "step:k1", sort: "step", tenantId: "acme" });
});

test("refuse rejects a step after an unknown outcome, and a step that is done is never called again", () => {
  const ends = ["crashes", "does", "says not"] as const;
  const runs = fc.array(
    fc.record({
      end: fc.constantFrom(...ends),
      ifUnknown: fc.constantFrom<IfUnknown>("refuse", "retry"),
    }),
  );
  fc.assert(
    fc.property(runs, (sequence) => {
      let record: StepRecord | undefined;
      let [done, unknown] = [0, 0];
      for (const [run, { end, ifUnknown }] of sequence.entries()) {
        const owner = `run ${run}`;
        const verdict = stepVerdict(record, owner, ifUnknown, nowMs);
        expect(verdict === "give").toBe(done > 0);
        expect(verdict === "refuse").toBe(done === 0 && unknown > 0 && ifUnknown === "refuse");
        if (verdict !== "call") continue;
        record = startedStep(owner, nowMs, keepMs);
        unknown = 1;
        if (end === "crashes") continue;
        unknown = 0;
        record =
          end === "does" ? doneStep(owner, nowMs, keepMs, {}) : undoneStep(owner, nowMs, keepMs);
        if (end === "does") done += 1;
      }
      expect(done).toBeLessThanOrEqual(1);
    }),
  );
});
