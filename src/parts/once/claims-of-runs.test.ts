import { describe, expect, test } from "vitest";
import { recordedMetrics } from "../../../test/support/recorded-metrics.ts";
import type { Logger } from "../../base/log/logger.ts";
import { claimKey, completedClaim, takenClaim } from "./claim.ts";
import { inProgress, keyReused } from "./claim-errors.ts";
import type { ClaimStore } from "./claim-store.ts";
import type { Run } from "./claimed-run.ts";
import {
  type OnceClaim,
  type OnceParts,
  replay,
  type Taken,
  type TakeOptions,
  take,
} from "./claims.ts";

const nowMs = 1_700_000_000_000;
const hourMs = 3_600_000;
const key = claimKey(["test"], "r1");
const answer = { status: 201, headers: { etag: "1" }, cookies: [], body: "theirs" };
const { cookies: _, ...stored } = answer;
const data = Buffer.from(`\0${JSON.stringify(stored)}`);
const write: OnceClaim = { kind: "write", key, replayedHeaders: [], deadlineMs: undefined };
const message: OnceClaim = { ...write, kind: "message" };

/** What a run sees that finds `found` when it takes its claim. */
function start(found: Taken | Error = { kind: "other" }, extending?: Error) {
  const asked: [key: unknown, options: TakeOptions][] = [];
  const extended: unknown[][] = [];
  const remembered: unknown[][] = [];
  const lines: unknown[][] = [];
  const draining = new AbortController().signal;
  const measured = recordedMetrics();
  const store = {
    extend: async (...given: unknown[]) => {
      extended.push(given);
      if (extending !== undefined) throw extending;
    },
    readParts: async (_key: unknown, owner: string, count: number) =>
      owner === "bob" && count === 2 ? [data.subarray(0, 9), data.subarray(9)] : undefined,
  } as unknown as ClaimStore; // safe: nothing else is called
  const parts: OnceParts = {
    store,
    claims: {
      take: async (wanted, options) => {
        asked.push([wanted, options]);
        if (found instanceof Error) throw found;
        return found;
      },
    },
    clock: { now: () => nowMs },
    pause: async () => undefined,
    waitMs: 1_000,
    draining,
    metrics: measured.metrics,
    remember: (...given) => void remembered.push(given),
  };
  const other = (text: string) => void lines.push(["not debug", text]);
  const log: Logger = {
    debug: (...given) => void lines.push(given),
    info: other,
    warn: other,
    error: other,
    child: () => log,
  };
  const run: Run<string> = {
    claim: undefined,
    signal: undefined,
    log,
    logPrefix: "once",
    work: async () => "done",
  };
  const counted = () => Object.keys(measured.sums());
  return { parts, run, asked, extended, remembered, lines, draining, counted };
}

const running: Taken = {
  kind: "running",
  record: takenClaim("bob", nowMs),
  untilMs: nowMs + 30_000,
};
const doneAfter = (hasWaited: boolean): Taken => ({
  kind: "done",
  record: completedClaim("bob", nowMs),
  hasWaited,
});
const takenAfter = (hasWaited: boolean): Taken =>
  // Safe cast: taking passes the claim on without looking at it.
  ({ kind: "taken", claim: {}, hasWaited }) as Taken;

describe("taking a claim", () => {
  test("for a write waits for a duplicate until the callers leave or the process drains, with a generation", async () => {
    const { parts, run, asked, draining } = start(running);
    const { signal } = new AbortController();
    const claim = { fingerprint: "f", comparesFingerprint: true, deadlineMs: 5, retentionMs: 6 };
    expect(await take(parts, { ...run, signal }, { ...write, ...claim })).toBe(running);
    const options = { ...claim, waitMs: 1_000, stop: [signal, draining], hasGeneration: true };
    expect(asked).toEqual([[key, options]]);
    expect(asked[0]?.[1].stop[0]).toBe(signal);
  });

  test("happens at the time that the caller has just read, if any", async () => {
    const { parts, run, asked } = start(running);
    await take(parts, run, message, 7);
    await take(parts, run, message);
    expect(asked.map(([, options]) => options.nowMs)).toEqual([7, undefined]);
  });

  test("for a message waits for nothing, and compares no fingerprint and makes no generation unasked", async () => {
    const { parts, run, asked, draining } = start(running);
    await take(parts, run, message);
    expect(asked).toEqual([[key, { waitMs: 0, stop: [draining], hasGeneration: false }]]);
  });

  test("makes a generation exactly if other work may use the key, where the claim says so", async () => {
    const { parts, run, asked } = start(running);
    await take(parts, run, { ...message, hasReusableKey: true });
    await take(parts, run, { ...write, hasReusableKey: false });
    expect(asked.map(([, { hasGeneration }]) => hasGeneration)).toEqual([true, false]);
  });

  test("of a key that was used for other work is refused, and counts as nothing", async () => {
    const { parts, run, lines, counted } = start({ kind: "other" });
    await expect(take(parts, run, write)).rejects.toMatchObject({
      code: "idempotency_key_reused",
    });
    expect([lines, counted()]).toEqual([[], []]);
  });

  test("passes the store's error on", async () => {
    const error = new Error("unavailable");
    const { parts, run } = start(error);
    await expect(take(parts, run, write)).rejects.toBe(error);
  });

  test.each<[string, Taken, unknown[], string[]]>([
    ["is free", takenAfter(false), ["once.taken", { waited: false }], ["taken"]],
    ["was waited for", takenAfter(true), ["once.taken", { waited: true }], ["taken", "waited"]],
    [
      "stays with a duplicate",
      running,
      ["once.conflicted", { leaseUntil: "2023-11-14T22:13:50.000Z" }],
      ["conflicted"],
    ],
    ["is done", doneAfter(false), [], ["replayed"]],
  ])("that %s is counted, and logged for a write alone", async (_case, found, line, outcomes) => {
    for (const claim of [write, message]) {
      const { parts, run, lines, counted } = start(found);
      expect(await take(parts, run, claim)).toBe(found);
      expect(lines).toEqual(claim === write && line.length > 0 ? [line] : []);
      const series = outcomes.map((outcome) => `keelson.claims ${claim.kind} ${outcome}`);
      expect(counted()).toEqual(series);
      expect(await take({ ...parts, metrics: undefined }, run, claim)).toBe(found);
      expect(counted()).toEqual(series);
    }
  });
});

describe("the replay of a write", () => {
  const whole = completedClaim("bob", nowMs, { result: { data } });

  test("gives the stored answer, remembers it until the claim expires, and extends nothing", async () => {
    for (const hasWaited of [false, true]) {
      const { parts, run, lines, remembered, extended } = start();
      const found = { record: { ...whole, expiresAt: 7 }, hasWaited };
      const replayed = await replay(parts, { ...run, logPrefix: "job" }, write, found);
      expect(replayed).toEqual({ kind: "replayed", answer });
      expect(lines).toEqual([["job.replayed", { waited: hasWaited }]]);
      expect(remembered).toEqual([[write, answer, 7]]);
      expect(extended).toEqual([]);
    }
  });

  test("reads the parts that the owner stored, and opens a sealed answer", async () => {
    const inParts = completedClaim("bob", nowMs, { result: { parts: 2 } });
    const { parts, run } = start();
    const found = { record: inParts, hasWaited: false };
    expect(await replay(parts, run, write, found)).toEqual({ kind: "replayed", answer });
    const sealed = completedClaim("bob", nowMs, { result: { data: Buffer.from("{sealed") } });
    const opener = {
      open: async (given: Uint8Array) => (given.toString() === "{sealed" ? data : given),
    };
    const opened = await replay(parts, run, { ...write, opener }, { ...found, record: sealed });
    expect(opened).toEqual({ kind: "replayed", answer });
    const plain = { ...found, record: whole };
    expect(await replay(parts, run, { ...write, opener }, plain)).toEqual(opened);
  });

  test("fails, and remembers nothing, if the stored answer is not complete", async () => {
    const { parts, run, remembered, lines } = start();
    const found = { record: completedClaim("bob", nowMs), hasWaited: false };
    await expect(replay(parts, run, write, found)).rejects.toThrow("dedup:r1 is not complete");
    expect([remembered, lines]).toEqual([[], []]);
  });
});

describe("the replay of a message", () => {
  const retentionMs = 25 * hourMs;
  /** A record that was completed before now. */
  const found = (beforeMs: number) => ({
    record: completedClaim("bob", nowMs - beforeMs, { retentionMs }),
    hasWaited: false,
  });
  const replayed = { kind: "replayed", answer: undefined };

  test("restarts the retention of the claim once that gains more than an hour", async () => {
    const { parts, run, extended, remembered, lines } = start();
    const claim = { ...message, retentionMs };
    expect(await replay(parts, run, claim, found(hourMs))).toEqual(replayed);
    expect(extended).toEqual([]);
    expect(await replay(parts, run, claim, found(hourMs + 1_000))).toEqual(replayed);
    expect(extended).toEqual([[key, "bob", (nowMs + retentionMs) / 1000]]);
    expect([remembered, lines]).toEqual([[], []]);
  });

  test("retains the claim for five minutes if it says nothing else, which never shortens it", async () => {
    const { parts, run, extended } = start();
    await replay(parts, run, message, found(0));
    expect(extended).toEqual([]);
    await replay(parts, run, message, found(retentionMs + hourMs));
    expect(extended).toEqual([[key, "bob", (nowMs + 300_000) / 1000]]);
  });

  test("lets a claim expire whose key other work may use", async () => {
    const { parts, run, extended } = start();
    const claim = { ...message, retentionMs, hasReusableKey: true };
    expect(await replay(parts, run, claim, found(5 * hourMs))).toEqual(replayed);
    expect(extended).toEqual([]);
  });

  test("is a replay even if the claim cannot be extended", async () => {
    const { parts, run, extended } = start(undefined, new Error("unavailable"));
    const claim = { ...message, retentionMs };
    expect(await replay(parts, run, claim, found(5 * hourMs))).toEqual(replayed);
    expect(extended).toHaveLength(1);
  });
});

test("a refusal says what to do: come again in a second, or send another key", () => {
  expect(inProgress()).toMatchObject({
    code: "request_in_progress",
    status: 409,
    headers: { "retry-after": "1" },
    message: "The same request is being processed; try again later",
  });
  expect(keyReused()).toMatchObject({
    code: "idempotency_key_reused",
    status: 422,
    message: "The Idempotency-Key was used for another request; send a new one",
  });
});
