import { describe, expect, test } from "vitest";
import { answer, dataOf, kept, key, nowMs, stage } from "../../../test/once/staged-run.ts";
import type { WriteAnswer } from "./answer.ts";
import type { RunWork } from "./claimed-run.ts";

const put = { Put: { n: 1 } };
const usualExpiry = (nowMs + 300_000) / 1000;
const refuse = (message: string): never => {
  throw new Error(message);
};
const commits: RunWork<WriteAnswer> = async ({ commit }) => {
  await commit([put], answer("committed"));
  return answer("returned");
};
/** A commit with an unknown outcome: the store answers neither it nor the question about it. */
const unknown = { commit: [new Error("socket hang up")], read: [new Error("unavailable")] };

describe("a commit", () => {
  test("completes the claim in one transaction, and its answer counts, not the returned one", async () => {
    const { perform, calls, given, remembered, lines } = stage();
    const outcome = await perform(commits);
    expect(outcome).toEqual({ kind: "committed", answer: answer("committed") });
    expect(calls).toEqual(["take", "commit", "stop"]);
    const claim = { owner: "ann", expiresAt: usualExpiry, result: { data: dataOf("committed") } };
    expect(given["commit"]).toMatchObject([
      [{ items: [put], completed: { key, claim }, held: undefined, tenantId: "t1" }],
    ]);
    expect([remembered, lines]).toEqual([[[kept("committed"), usualExpiry]], []]);
  });

  test("seals the answer that it stores", async () => {
    const seal = async () => Buffer.from("sealed");
    const cipher = { seal, open: async () => refuse("nothing is opened") };
    const { perform, given } = stage({ claim: { cipher } });
    await perform(commits);
    expect(given["commit"]).toMatchObject([
      [{ completed: { claim: { result: { data: Buffer.from("sealed") } } } }],
    ]);
  });

  test("counts even if the work throws later, and a second one is refused", async () => {
    const { perform, lines } = stage();
    const outcome = await perform(async ({ commit }) => {
      await commit([put], answer("committed"));
      await expect(commit([], answer("twice"))).rejects.toThrow("a run commits once");
      return refuse("afterwards");
    });
    expect(outcome).toEqual({ kind: "committed", answer: answer("committed") });
    expect(lines).toEqual([["error once.threw_after_commit", "afterwards"]]);
  });

  test("that the work does not wait for counts as well, whenever the store answers", async () => {
    let written: () => void = () => undefined;
    const writing = new Promise<void>((resolve) => {
      written = resolve;
    });
    const { perform, calls } = stage({ says: { commit: [writing] } });
    const outcome = perform(async ({ commit }) => {
      void commit([put], answer("committed"));
      return answer("returned");
    });
    await new Promise(setImmediate); // the work is over by now
    written();
    expect(await outcome).toEqual({ kind: "committed", answer: answer("committed") });
    expect(calls).toEqual(["take", "commit", "stop"]);
  });

  test("with an unknown outcome keeps the claim, and leaves the run's own answer not noted", async () => {
    const { perform, lines, calls, pauses } = stage({ says: unknown });
    const outcome = await perform(async (run) => {
      expect(run.isCommitUncertain()).toBe(false);
      await expect(run.commit([put], answer("committed"))).rejects.toThrow("socket hang up");
      expect(run.isCommitUncertain()).toBe(true);
      return answer("returned");
    });
    expect(outcome).toMatchObject({ kind: "done", answer: answer("returned"), isNoted: false });
    expect(lines).toEqual([["error once.commit_uncertain", undefined]]);
    expect([calls.at(-1), calls.includes("complete"), pauses]).toEqual(["stop", false, [1, 2]]);
    const failed = stage({ says: unknown });
    await expect(failed.perform(commits)).rejects.toThrow("socket hang up");
    expect(failed.lines).toEqual([["error once.commit_uncertain", "socket hang up"]]);
    expect(failed.given["release"]).toBeUndefined();
  });

  test("with an unknown outcome leaves a message to be completed, and is counted once", async () => {
    const { perform, calls, counted } = stage({ kind: "message", says: unknown });
    const outcome = await perform(async ({ commit }) => {
      await commit([put], answer("committed")).catch(() => undefined);
      return answer("returned");
    });
    expect(outcome).toMatchObject({ kind: "done", isNoted: false });
    expect(calls.slice(-3)).toEqual(["stop", "complete", "stop"]);
    expect(counted()).toEqual({
      "keelson.claims message taken": 1,
      "keelson.claims message unknown": 1,
    });
  });

  test("apart from the answer needs the claim, which the run completes afterwards", async () => {
    const own = { Put: { n: 2 } };
    const apart = stage();
    const outcome = await apart.perform(async (run) => {
      await run.commitApart([put], [own]);
      return answer("returned");
    });
    expect(outcome).toMatchObject({ kind: "done", answer: answer("returned") });
    expect(apart.given["commit"]).toMatchObject([
      [{ items: [put, own], completed: undefined, held: { key, owner: "ann" } }],
    ]);
    expect(apart.calls).toEqual(["take", "commit", "stop", "complete", "stop"]);
    const uncertain = stage({ says: unknown });
    await uncertain.perform(async (run) => {
      await expect(run.commitApart([put], [])).rejects.toThrow("socket hang up");
      expect(run.isCommitUncertain()).toBe(true);
      return answer("returned");
    });
  });

  test("does not start once the run was told to stop", async () => {
    const { perform, given } = stage({ signal: AbortSignal.abort(new Error("stop")) });
    await expect(perform(commits)).rejects.toThrow("stop");
    expect(given["commit"]).toBeUndefined();
  });
});
