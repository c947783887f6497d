import { describe, expect, test } from "vitest";
import { callsOf, hooksWith, recordedCommits } from "../../../test/support/recorded-commits.ts";
import { noAnswer, type WriteAnswer } from "../../parts/once/answer.ts";

const hookPut = { Put: { TableName: "t", Item: { pk: "hook" } } };
const ownItem = { Update: "end of the run" };
const answer: WriteAnswer = { status: 200, headers: {}, cookies: [], body: "done" };
const answering = (more: Partial<WriteAnswer>) => ({ answerOf: () => ({ ...answer, ...more }) });
const fails = (message: string) => async () => {
  throw new Error(message);
};
const dropped = (types: readonly string[], number: number) => [
  "log.info",
  "effects.dropped",
  { types, number },
];

describe("a handler that returns", () => {
  test("commits its effects with the answer of the received result, and the items of hooks", async () => {
    const { commits, did, publish } = recordedCommits({
      work: {
        receive: (returned) => `received ${returned}`,
        answerOf: (result) => ({ ...answer, body: String(result) }),
        hooks: hooksWith(async (result) => (result === "received one" ? [hookPut] : [])),
        own: () => [ownItem],
      },
    });
    commits.open();
    await publish();

    expect(await commits.settle("one")).toBe("received one");
    const [id] = callsOf(did, "named").flat();
    expect(callsOf(did, "commit")).toEqual([
      [[hookPut], { ...answer, body: "received one" }, [{ Put: id }, ownItem]],
    ]);
    expect(callsOf(did, "dispatch")).toEqual([[[expect.objectContaining({ eventId: id })]]]);
  });

  test("does not receive again what it has committed", async () => {
    const { commits } = recordedCommits({ work: { receive: fails("received twice") } });
    await commits.commit("handler", [], 1);
    expect(await commits.settle(1)).toBe(1);
  });

  test("writes nothing without effects, items of hooks and items of the run", async () => {
    const plain = recordedCommits();
    await plain.commits.start("handler", async () => undefined); // it joins no commit
    expect(await plain.commits.settle("result")).toBe("result");
    const hooked = recordedCommits({ work: { hooks: hooksWith(async () => []) } });
    hooked.commits.open();
    await hooked.commits.settle("result");
    expect([plain.did, hooked.did]).toEqual([[], []]);
    for (const { publish } of [plain, hooked])
      await expect(publish()).rejects.toThrow("the run has committed");
  });

  test("writes the items of the run alone when nothing else is written", async () => {
    const { commits, did } = recordedCommits({
      work: { own: () => [ownItem], ...answering({ status: 201 }) },
    });
    await commits.settle(undefined);
    expect(did).toEqual([["commit", [], { ...answer, status: 201 }, [ownItem]]]);
  });

  test.each([
    ["an error answer", 400, false, 0],
    ["an error answer about done work", 500, true, 1],
    ["a redirect", 399, false, 1],
  ])("with %s commits what was done, and nothing else", async (_, status, isDone, number) => {
    const { commits, did, publish } = recordedCommits({ work: answering({ status, isDone }) });
    await publish();
    await commits.settle(undefined);
    expect(callsOf(did, "commit")).toHaveLength(number);
    expect(callsOf(did, "dispatch")).toHaveLength(number);
  });

  test("with cookies in its answer commits its effects without completing the claim", async () => {
    const { commits, did, publish } = recordedCommits({
      work: { ...answering({ cookies: ["a=b"] }), hooks: hooksWith(async () => [hookPut]) },
    });
    commits.open();
    await publish();
    await commits.settle(undefined);
    const [id] = callsOf(did, "named").flat();
    expect(callsOf(did, "commitApart")).toEqual([[[hookPut], [{ Put: id }]]]);
    expect(callsOf(did, "commit")).toEqual([]);
    expect(callsOf(did, "dispatch")).toHaveLength(1);
  });

  test("waits for effects it has not awaited, and throws their error", async () => {
    const { commits, did, publish } = recordedCommits();
    publish();
    await commits.settle(undefined);
    expect(callsOf(did, "commit")).toHaveLength(1);

    const failing = recordedCommits();
    failing.publish();
    failing.commits.start("handler", fails("forgotten"));
    await expect(failing.commits.settle(undefined)).rejects.toThrow("forgotten");
    expect(callsOf(failing.did, "commit")).toEqual([]);
  });

  test("does not wait for an effect once its signal has aborted", async () => {
    const { commits } = recordedCommits({ run: { signal: AbortSignal.abort() } });
    commits.start("handler", () => new Promise(() => undefined));
    await commits.commit("handler", [], undefined);
    expect(await commits.settle("result")).toBe("result");
  });

  test("starts no further effect and no commit", async () => {
    const open = recordedCommits({ work: answering({ status: 500 }) });
    await open.publish();
    await open.commits.settle(undefined);
    await expect(open.publish()).rejects.toThrow("the run has ended");
    const untouched = recordedCommits();
    await untouched.commits.settle(undefined);
    await expect(untouched.commits.commit("handler", [], 1)).rejects.toThrow("the run has ended");
  });
});

describe("an attempt that fails", () => {
  const conflict = () => {
    let attempts = 0;
    const committed: unknown[] = [];
    const commit = async (...given: unknown[]) => {
      attempts += 1;
      if (attempts === 1) throw new Error("conflict");
      committed.push(given);
    };
    return { committed, commit };
  };

  test("drops its effects and says which, and the next attempt writes only later ones, with equal IDs", async () => {
    const { committed, commit } = conflict();
    const { commits, did, done, publish, deliver } = recordedCommits({ run: { commit } });
    await publish(1);
    await publish(2);
    await deliver();
    await expect(commits.commit("handler", [], undefined)).rejects.toThrow("conflict");
    expect(done()).toEqual([dropped(["event note.written", "delivery wall"], 3)]);
    await publish(3);
    await commits.commit("handler", [], undefined);

    const ids = callsOf(did, "named").flat();
    expect(ids[3]).toBe(ids[0]);
    expect(committed).toEqual([[[], noAnswer, [{ Put: ids[0] }]]]);
    const [rows] = callsOf(did, "dispatch").flat() as [{ text: string }[]]; // safe: the fake's rows
    expect(rows.map(({ text }) => JSON.parse(text).payload.n)).toEqual([3]);
  });

  test("keeps the effects of `before` hooks, and says nothing where it drops none", async () => {
    const { committed, commit } = conflict();
    const { commits, did, done, publish } = recordedCommits({
      run: { commit },
      work: { hooks: hooksWith(async () => []) },
    });
    await publish(1, "hook");
    commits.open();
    await expect(commits.commit("handler", [], undefined)).rejects.toThrow("conflict");
    expect(done()).toEqual([]);
    await commits.settle(undefined);
    expect(committed).toEqual([[[], noAnswer, [{ Put: callsOf(did, "named")[0]?.[0] }]]]);
  });

  test("is not repeated where it may have been written, and drops nothing", async () => {
    const { commits, done, publish } = recordedCommits({
      run: { commit: fails("no answer"), isCommitUncertain: () => true },
    });
    await publish();
    await expect(commits.commit("handler", [], undefined)).rejects.toThrow("no answer");
    expect(done()).toEqual([]);
    await expect(publish()).rejects.toThrow("the run may have committed");
    await expect(commits.commit("handler", [], undefined)).rejects.toThrow("leave it to a retry");
  });

  test("in a hook, which commits nothing, does not end the handler's attempt", async () => {
    const { commits, done } = recordedCommits();
    await expect(commits.commit("hook", [], 1)).rejects.toThrow("a hook commits nothing");
    await commits.commit("handler", [], 1);
    expect(done()).toEqual([["commit", [], noAnswer, []]]);
  });
});

describe("a handler that throws", () => {
  test("waits for its calls, drops their effects, and its error takes precedence over theirs", async () => {
    const { commits, done, publish } = recordedCommits();
    await publish();
    let end: () => void = () => undefined;
    commits.start("handler", () => new Promise<void>((resolve) => (end = resolve)));
    commits.start("handler", fails("forgotten"));
    let isOver = false;
    const over = commits.abandon().then(() => {
      isOver = true;
    });
    await new Promise(setImmediate);
    expect(isOver).toBe(false);
    end();
    await over;
    expect(done()).toEqual([]);
    await expect(publish()).rejects.toThrow("the run has ended");
  });

  test.each([
    ["had effects", true],
    ["had none", false],
  ])("logs the error of a call after its end that nobody awaits, whether it %s", async (_, had) => {
    const { commits, did, publish } = recordedCommits();
    if (had) await publish();
    await commits.abandon();
    commits.start("handler", fails("too late"));
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    expect(callsOf(did, "log.error")).toEqual([
      ["effects.lost", expect.objectContaining({ message: "too late" })],
    ]);
  });
});
