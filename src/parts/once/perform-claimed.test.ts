import { describe, expect, test } from "vitest";
import {
  answer,
  dataOf,
  done,
  kept,
  key,
  nowMs,
  running,
  stage,
} from "../../../test/once/staged-run.ts";
import { FrameworkError } from "../../base/errors/errors.ts";
import type { WriteAnswer } from "./answer.ts";
import type { HeldRun, RunWork } from "./claimed-run.ts";

const put = { Put: { n: 1 } };
const usualExpiry = (nowMs + 300_000) / 1000;
const timeout = new FrameworkError("timeout", "too long");
const refuse = (message: string): never => {
  throw new Error(message);
};
const commits: RunWork<WriteAnswer> = async ({ commit }) => {
  await commit([put], answer("committed"));
  return answer("returned");
};
/** A cancellation: another run holds the claim. */
const overtaken = [
  { code: "None", message: "" },
  { code: "ConditionalCheckFailed", message: "" },
];
const unavailable = [new Error("unavailable")];

describe("a write", () => {
  test("does its work under the claim, stores what repeats get, and gives its whole answer", async () => {
    const { perform, calls, given, remembered, lines, counted } = stage({
      claim: { retentionMs: 600_000, fingerprint: "f" },
    });
    const outcome = await perform(async () => {
      calls.push("work");
      return answer("one");
    });
    const whole = answer("one");
    expect(outcome).toEqual({ kind: "done", result: whole, answer: whole, isNoted: true });
    expect(calls).toEqual(["take", "work", "stop", "complete", "stop"]);
    const expiresAt = (nowMs + 600_000) / 1000;
    const claim = { owner: "ann", fingerprint: "f", generation: "ann" };
    const result = { data: dataOf("one") };
    expect(given["complete"]).toEqual([
      [key, { status: "COMPLETED", expiresAt, execution: undefined, ...claim, result }],
    ]);
    expect(remembered).toEqual([[kept("one"), expiresAt]]);
    expect(lines).toEqual([]);
    expect(counted()).toEqual({ "keelson.claims write taken": 1 });
  });

  test("seals the answer, and stores one that is too large in parts that expire with the claim", async () => {
    const sealed = Buffer.alloc(350_001, 7);
    const seal = async () => sealed;
    const cipher = { seal, open: async () => refuse("nothing is opened") };
    const { perform, given } = stage({ claim: { cipher } });
    await perform(async () => answer("one"));
    expect(given["putParts"]).toEqual([
      [key, "ann", [sealed.subarray(0, 350_000), sealed.subarray(350_000)], usualExpiry],
    ]);
    expect(given["complete"]).toMatchObject([[key, { result: { parts: 2 } }]]);
  });

  test("whose answer is an error or sets cookies gives it, and lets the next repeat do the work", async () => {
    for (const more of [{ status: 400 }, { cookies: ["s=1"] }]) {
      const assertFits = () => refuse("what is not stored is not measured");
      const { perform, calls, remembered } = stage({ claim: { assertFits } });
      const own = answer("one", more);
      const outcome = { kind: "done", result: own, answer: own, isNoted: true };
      expect(await perform(async () => own)).toEqual(outcome);
      expect([calls, remembered]).toEqual([["take", "stop", "release"], []]);
    }
  });

  test("whose answer does not fit is refused and released, even after the run was told to stop", async () => {
    const assertFits = () => refuse("too large");
    const signal = AbortSignal.abort(timeout);
    const { perform, calls } = stage({ claim: { assertFits }, signal });
    await expect(perform(async () => answer("one"))).rejects.toThrow("too large");
    expect(calls).toEqual(["take", "stop", "release"]);
  });

  test("that throws passes the very error on and releases the claim, unless its own time was over", async () => {
    const untyped = AbortSignal.abort({ code: "timeout" });
    const stopped = AbortSignal.abort(new FrameworkError("request_in_progress", "gone"));
    for (const signal of [new AbortController().signal, untyped, stopped]) {
      const { perform, calls, counted } = stage({ signal });
      await expect(perform(() => Promise.reject(timeout))).rejects.toBe(timeout);
      expect(calls).toEqual(["take", "stop", "release"]);
      expect(counted()).toEqual({ "keelson.claims write taken": 1 });
    }
    const { perform, calls, counted } = stage({ signal: AbortSignal.abort(timeout) });
    await expect(perform(async () => refuse("late"))).rejects.toThrow("late");
    expect(calls).toEqual(["take", "stop"]);
    expect(counted()).toMatchObject({ "keelson.claims write unknown": 1 });
  });

  test("that failed gives its error even if the claim cannot be released, and logs why", async () => {
    const { perform, lines } = stage({ says: { release: unavailable } });
    await expect(perform(async () => refuse("failed"))).rejects.toThrow("failed");
    expect(lines).toEqual([["warn once.release_failed", "unavailable"]]);
  });

  test("gives its answer if it cannot be recorded, says that it is not noted, and remembers nothing", async () => {
    const { perform, lines, remembered, counted, calls } = stage({
      says: { complete: unavailable },
    });
    const outcome = await perform(async () => answer("one"));
    expect(outcome).toMatchObject({ kind: "done", answer: answer("one"), isNoted: false });
    expect([lines, remembered]).toEqual([[["error once.completion_failed", "unavailable"]], []]);
    expect(counted()).toMatchObject({ "keelson.claims write unknown": 1 });
    expect(calls).toEqual(["take", "stop", "complete", "complete", "stop"]);
  });

  test("is refused while a duplicate runs, and replays the answer of one that is done, without work", async () => {
    const busy = stage({ takes: [running] });
    const never = async () => refuse("no work");
    await expect(busy.perform(never)).rejects.toMatchObject({ code: "request_in_progress" });
    const repeated = stage({ takes: [done("theirs")] });
    expect(await repeated.perform(never)).toEqual({ kind: "replayed", answer: kept("theirs") });
    expect(repeated.remembered).toEqual([[kept("theirs"), usualExpiry]]);
  });
});

describe("a write that another run has overtaken", () => {
  const fenced = { complete: [false] };

  test("gives the answer of the other run if it is done", async () => {
    const { perform, lines, remembered, counted } = stage({
      says: fenced,
      takes: ["ann", done("theirs")],
      logPrefix: "job",
    });
    const outcome = await perform(async () => answer("ours"));
    expect(outcome).toEqual({ kind: "replayed", answer: kept("theirs") });
    expect(remembered).toEqual([[kept("theirs"), usualExpiry]]);
    expect(lines).toEqual([["warn job.fenced", undefined]]);
    expect(counted()).toEqual({
      "keelson.claims write taken": 1,
      "keelson.claims write replayed": 1,
      "keelson.claims write fenced": 1,
    });
  });

  test("gives its own answer, not noted, if the other run is at work or cannot be found out", async () => {
    for (const [found, reason] of [
      [running, "The same request is being processed; try again later"],
      [new Error("unavailable"), "unavailable"],
    ] as const) {
      const { perform, lines, remembered, counted } = stage({
        says: fenced,
        takes: ["ann", found],
      });
      const outcome = await perform(async () => answer("ours"));
      expect(outcome).toMatchObject({ kind: "done", answer: answer("ours"), isNoted: false });
      expect(lines).toEqual([
        ["warn once.fenced", undefined],
        ["warn once.lost", reason],
      ]);
      expect(remembered).toEqual([]);
      expect(counted()).toMatchObject({ "keelson.claims write unknown": 1 });
    }
  });

  test("completes the claim again if the other run has let go of it", async () => {
    const { perform, given, remembered, calls } = stage({
      says: { complete: [false, true] },
      takes: ["ann", "ann-again"],
    });
    const outcome = await perform(async () => answer("ours"));
    expect(outcome).toMatchObject({ answer: answer("ours"), isNoted: true });
    expect(given["complete"]).toMatchObject([
      [key, { owner: "ann" }],
      [key, { owner: "ann-again", result: { data: dataOf("ours") } }],
    ]);
    expect(remembered).toHaveLength(1);
    expect(calls.filter((name) => name === "stop")).toHaveLength(3);
  });

  test("and fails gives the answer of the other run, or its own error once it has tried to let go of the claim", async () => {
    const takenOver = { commit: [overtaken] };
    const theirs = stage({ says: takenOver, takes: ["ann", done("theirs")] });
    expect(await theirs.perform(commits)).toEqual({ kind: "replayed", answer: kept("theirs") });
    const ours = stage({ says: takenOver, takes: ["ann", "ann-again"] });
    await expect(ours.perform(commits)).rejects.toMatchObject({ code: "request_in_progress" });
    expect(ours.given["release"]).toEqual([[key, "ann-again"]]);
    const neither = stage({ says: takenOver, takes: ["ann", new Error("unavailable")] });
    await expect(neither.perform(commits)).rejects.toMatchObject({ code: "request_in_progress" });
    expect(neither.lines).toEqual([["warn once.lost", "unavailable"]]);
  });
});

describe("a message", () => {
  test("is completed without an answer, and its commit stores none", async () => {
    const plain = stage({ kind: "message" });
    const result = answer("ignored", { status: 500 });
    const outcome = { kind: "done", result, answer: undefined, isNoted: true };
    expect(await plain.perform(async () => result)).toEqual(outcome);
    expect(plain.given["complete"]).toMatchObject([[key, { owner: "ann", result: undefined }]]);
    const committing = stage({ kind: "message" });
    expect(await committing.perform(commits)).toMatchObject({ kind: "committed" });
    expect(committing.given["commit"]).toMatchObject([
      [{ completed: { claim: { result: undefined } } }],
    ]);
    expect([plain.remembered, committing.remembered]).toEqual([[], []]);
  });

  test("that is being handled tells until when, and one that was handled is a replay without an answer", async () => {
    const never = async () => refuse("no work");
    const busy = stage({ kind: "message", takes: [running] });
    expect(await busy.perform(never)).toEqual(running);
    const repeated = stage({ kind: "message", takes: [done("theirs")] });
    expect(await repeated.perform(never)).toEqual({ kind: "replayed", answer: undefined });
  });

  test("that another run has taken over is redelivered", async () => {
    const { perform, lines, calls } = stage({
      kind: "message",
      says: { complete: [false] },
      logPrefix: "event",
    });
    expect(await perform(async () => answer("ours"))).toEqual({ kind: "redeliver" });
    expect(lines).toEqual([["warn event.fenced", undefined]]);
    expect(calls).toEqual(["take", "stop", "complete", "stop"]);
  });

  test("whose end cannot be recorded fails, with the store's error as the cause", async () => {
    const { perform } = stage({ kind: "message", says: { complete: unavailable } });
    await expect(perform(async () => answer("ours"))).rejects.toMatchObject({
      message: "the work is done, but could not be recorded; it may run again",
      cause: unavailable[0],
    });
  });

  test("that fails is released, so that its redelivery does the work", async () => {
    const { perform, calls } = stage({ kind: "message" });
    await expect(perform(async () => refuse("failed"))).rejects.toThrow("failed");
    expect(calls).toEqual(["take", "stop", "release"]);
  });
});

test("work without a claim runs each time, calls no store, and has no claim to show", async () => {
  const { perform, calls, counted } = stage({ kind: "unclaimed" });
  const seeds = new Set<string>();
  for (let n = 1; n <= 2; n += 1) {
    const outcome = await perform(async (run) => {
      expect(run.held()).toBeUndefined();
      expect(run.seed()).toBe(run.seed());
      seeds.add(run.seed());
      return answer("one");
    });
    const own = { kind: "done", result: answer("one"), answer: undefined, isNoted: true };
    expect(outcome).toEqual(own);
  }
  expect([seeds.size, calls, counted()]).toEqual([2, [], {}]);
  const committing = stage({ kind: "unclaimed" });
  expect(await committing.perform(commits)).toMatchObject({ kind: "committed" });
  expect(committing.remembered).toEqual([]);
});

test("work under a claim sees its signal, the claim with its options, and the claim's seed", async () => {
  const { signal } = new AbortController();
  const { perform, held, wanted } = stage({ signal });
  let seen: HeldRun | undefined;
  await perform(async (run) => {
    seen = run.held();
    expect([run.signal === signal, run.seed()]).toEqual([true, held[0]?.seed()]);
    return answer("one");
  });
  expect(seen?.claim).toBe(held[0]);
  expect(seen?.wanted).toBe(wanted);
});
