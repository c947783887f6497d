import fc from "fast-check";
import { expect, test } from "vitest";
import { codePoint } from "../../../test/support/code-point.ts";
import {
  type ClaimRecord,
  claimKey,
  completedClaim,
  defaultRetentionMs,
  expiry,
  judge,
  keyText,
  leaseEnd,
  leaseMs,
  longestMessageMs,
  messageRetentionMs,
  skewMs,
  takenClaim,
} from "./claim.ts";

const nowMs = 1_700_000_000_000;

test("a claim is free if it is absent, mine for its owner, and running until 2 s after its lease", () => {
  const claim = takenClaim("ann", nowMs);
  expect(judge(undefined, "bob", nowMs)).toBe("free");
  expect(judge(claim, "ann", nowMs)).toBe("mine");
  expect(judge(claim, "bob", nowMs + leaseMs + skewMs)).toBe("running");
  expect(judge(claim, "bob", nowMs + leaseMs + skewMs + 1)).toBe("free");
});

test("a completed claim is done for 300 s for every caller, and then free", () => {
  const claim = completedClaim("ann", nowMs);
  for (const who of ["ann", "bob"]) {
    expect(judge(claim, who, nowMs + defaultRetentionMs - 1)).toBe("done");
    expect(judge(claim, who, nowMs + defaultRetentionMs)).toBe("free");
  }
});

test("no lease outlasts its process, and the store keeps a claim while it is leased", () => {
  fc.assert(
    fc.property(
      fc.nat(100_000),
      fc.option(fc.nat(100_000), { nil: undefined }),
      (elapsedMs, leftMs) => {
        const atMs = nowMs + elapsedMs;
        const deadlineMs = leftMs === undefined ? undefined : atMs + leftMs;
        const { leaseUntilMs, expiresAt } = takenClaim("ann", atMs, { deadlineMs });
        expect(leaseUntilMs).toBe(leaseEnd(atMs, deadlineMs));
        expect(leaseUntilMs).toBeLessThanOrEqual(
          Math.min(atMs + leaseMs, deadlineMs ?? Number.POSITIVE_INFINITY),
        );
        expect(expiresAt * 1000).toBeGreaterThanOrEqual(leaseUntilMs + defaultRetentionMs);
        expect(expiry(atMs)).toBe(Math.ceil((atMs + defaultRetentionMs) / 1000));
      },
    ),
  );
});

test("a claim with a hold time of its own is leased for that time, and stored for the usual retention after it", () => {
  const { leaseUntilMs, expiresAt } = takenClaim("ann", nowMs, {
    heldMs: 900_000,
    deadlineMs: nowMs + 1,
  });
  expect(leaseUntilMs).toBe(nowMs + 900_000);
  expect(expiresAt).toBe((nowMs + 900_000 + defaultRetentionMs) / 1000);
});

test("a completed claim is retained for its own retention time if it has one", () => {
  const claim = completedClaim("ann", nowMs, { retentionMs: 5_000 });
  expect(judge(claim, "bob", nowMs + 4_999)).toBe("done");
  expect(judge(claim, "bob", nowMs + 5_000)).toBe("free");
});

test("a claim in progress with a generation is kept as long as SQS keeps a message, for a run that takes it over", () => {
  const { leaseUntilMs, expiresAt, generation } = takenClaim("ann", nowMs, { generation: "g" });
  expect([generation, expiresAt]).toEqual(["g", (leaseUntilMs + 14 * 86_400_000) / 1000]);
  expect(longestMessageMs).toBe(14 * 86_400_000);
  expect(completedClaim("ann", nowMs, { generation: "g" })).toMatchObject({ generation: "g" });
});

test.each([
  [0, 25],
  [16, 25],
  [20, 30],
  [14 * 24, 21 * 24],
])(
  "the claim of a message that may be redelivered for %i hours is retained for %i",
  (redeliveryHours, retainedHours) => {
    expect(messageRetentionMs(redeliveryHours * 3_600_000)).toBe(retainedHours * 3_600_000);
  },
);

test("a claim keeps its fingerprint, execution and result", () => {
  const taken: ClaimRecord = takenClaim("ann", nowMs, { fingerprint: "f", execution: "x" });
  expect(taken).toMatchObject({ fingerprint: "f", execution: "x", status: "INPROGRESS" });
  const done: ClaimRecord = completedClaim("ann", nowMs, {
    fingerprint: "f",
    execution: "x",
    result: { parts: 2 },
  });
  expect(done).toMatchObject({
    fingerprint: "f",
    execution: "x",
    result: { parts: 2 },
    status: "COMPLETED",
  });
});

test("different namespaces and IDs have different keys, however they are split", () => {
  const text = fc.string({ unit: codePoint, maxLength: 8 });
  const parts = fc.array(text, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(parts, text, parts, text, (one, id, other, otherId) => {
      fc.pre(JSON.stringify([one, id]) !== JSON.stringify([other, otherId]));
      // Lone surrogates become one and the same character in UTF-8; neither headers nor tokens can carry them.
      fc.pre([...one, id, ...other, otherId].every((part) => part.isWellFormed()));
      expect(claimKey(one, id)).not.toEqual(claimKey(other, otherId));
    }),
    { numRuns: 2_000 },
  );
});

test("the sort key follows the specification, and is bounded", () => {
  expect(claimKey(["n"], "r1").sort).toBe("dedup:r1");
  expect(claimKey(["n"], "x".repeat(512)).sort).toBe(`dedup:${"x".repeat(512)}`);
  expect(claimKey(["n"], "x".repeat(10_000)).sort).toMatch(/^dedup:sha256:[\w-]{43}$/);
  // DynamoDB takes 1,024 bytes, not characters.
  expect(claimKey(["n"], "\u20ac".repeat(500)).sort).toMatch(/^dedup:sha256:[\w-]{43}$/);
  expect(claimKey(["n"], "x".repeat(10_000))).not.toEqual(claimKey(["n"], "x".repeat(10_001)));
});

test("a key is the same in every process and version, and has one text form for maps", () => {
  const key = claimKey(["a", "bc"], "r1");
  expect(key).toEqual({
    partition: "UxClh4h4GrJdWtfD-FA1gktOt736OU4KwhhicUcrVJI",
    sort: "dedup:r1",
  });
  expect(keyText(key)).toBe(`${key.partition} dedup:r1`);
});
