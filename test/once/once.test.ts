import { expect, test } from "vitest";
import { CommitConditionError, FrameworkError } from "../../src/base/errors/errors.ts";
import type { Logger } from "../../src/base/log/logger.ts";
import type { WriteAnswer } from "../../src/parts/once/answer.ts";
import {
  type ClaimRecord,
  claimKey,
  completedClaim,
  keyText,
  takenClaim,
} from "../../src/parts/once/claim.ts";
import type { RunOutcome, RunParts } from "../../src/parts/once/claimed-run.ts";
import type { OnceClaim } from "../../src/parts/once/claims.ts";
import { createOnce } from "../../src/parts/once/once.ts";
import { recordedMetrics } from "../support/recorded-metrics.ts";
import { type Fate, type Process, storeOf, timersOf, World } from "./world.ts";

const key = claimKey(["test"], "r1");
const text = keyText(key);
const answer = (body: string, more: Partial<WriteAnswer> = {}): WriteAnswer => ({
  status: 200,
  headers: {},
  cookies: [],
  body,
  ...more,
});

/** Processes over one store; `fate` decides what becomes of each call, by its name. */
function start({
  fate = (): Fate => "fine",
  waitMs = 1_000,
}: {
  fate?: (call: string, nth: number) => Fate;
  waitMs?: number;
} = {}) {
  const world = new World();
  const calls: string[] = [];
  const lines: [string, Record<string, unknown> | undefined][] = [];
  const line = (msg: string, data?: Record<string, unknown>) => void lines.push([msg, data]);
  const log: Logger = { info: line, warn: line, error: line, debug: line, child: () => log };
  const write: OnceClaim = {
    kind: "write",
    key,
    fingerprint: "f",
    comparesFingerprint: true,
    replayedHeaders: ["x-more"],
    cipher: undefined,
    deadlineMs: undefined,
    assertFits: () => {},
  };
  const measured = recordedMetrics();
  const process = (name: string) => {
    const own: Process = { isAlive: true, name };
    const draining = new AbortController();
    const turn = async (call: string) => {
      calls.push(call);
      await Promise.resolve();
      return fate(call, calls.filter((one) => one === call).length);
    };
    const timers = timersOf(world, own, turn);
    let owners = 0;
    const once = createOnce({
      store: storeOf(world, own, turn),
      clock: { now: () => world.nowMs },
      schedule: timers,
      waitMs,
      draining: draining.signal,
      newOwner: () => `${name}-${++owners}`,
      metrics: measured.metrics,
    });
    return { once, timers, draining };
  };
  const run = (
    at: ReturnType<typeof process>,
    work: Work,
    more: Partial<OnceClaim> = {},
    signal?: AbortSignal,
  ) =>
    at.once
      .run({
        claim: { ...write, ...more },
        logPrefix: "once",
        log,
        signal,
        work,
        answerOf: (given) => given,
      })
      .then(answered);
  return {
    world,
    calls,
    lines,
    process,
    run,
    counted: measured.sums,
    messages: () => lines.map(([msg]) => msg),
  };
}

/** The work of a write. */
type Work = (run: RunParts) => Promise<WriteAnswer>;

/** The answer of a write that came to its end, and whether it is one of before. */
function answered(ended: RunOutcome<WriteAnswer>): { answer: WriteAnswer; isReplay: boolean } {
  const { answer } = ended as { readonly answer: WriteAnswer }; // safe: a write that did not fail has one
  return { answer, isReplay: ended.kind === "replayed" };
}

/** Something to wait for. */
function gate() {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}
async function after(
  gate: Promise<void>,
  give: () => WriteAnswer | Promise<never>,
): Promise<WriteAnswer> {
  await gate;
  return give();
}
const commits: Work = async ({ commit }) => {
  await commit([{ Put: { n: 1 } }], answer("done"));
  return answer("done");
};
const settled = (promise: Promise<unknown>) =>
  promise.then(
    () => "answered",
    (error: Error & { code?: string }) => error.code ?? error.message,
  );

test("a repeat gets the first answer: from memory without a store call, from another process with one", async () => {
  const { process, run, calls, counted } = start();
  const [a, b] = [process("a"), process("b")];
  const first = answer("one", { headers: { location: "/1", "x-more": "m", "x-anew": "n" } });
  expect(await run(a, async () => first)).toEqual({ answer: first, isReplay: false });
  expect(calls).toEqual(["take", "complete"]);
  const kept = { ...first, headers: { location: "/1", "x-more": "m" } };
  expect(await run(a, async () => answer("two"))).toEqual({ answer: kept, isReplay: true });
  expect(calls.length).toBe(2);
  expect(await run(b, async () => answer("two"))).toEqual({ answer: kept, isReplay: true });
  expect(calls).toEqual(["take", "complete", "take"]);
  expect(await run(b, async () => answer("two"))).toMatchObject({ isReplay: true });
  expect(calls.length).toBe(3);
  expect(counted()).toEqual({
    "keelson.claims write taken": 1,
    "keelson.claims write replayed": 3,
  });
});

test("a key reused for other work is refused: from memory, by a concurrent run here or elsewhere, and from the store", async () => {
  const { process, run } = start();
  const [a, b] = [process("a"), process("b")];
  const { open, opened } = gate();
  const running = run(a, () => after(opened, () => answer("one")));
  await Promise.resolve();
  for (const at of [a, b])
    expect(await settled(run(at, async () => answer("x"), { fingerprint: "g" }))).toBe(
      "idempotency_key_reused",
    );
  open();
  await running;
  for (const at of [a, b])
    expect(await settled(run(at, async () => answer("x"), { fingerprint: "g" }))).toBe(
      "idempotency_key_reused",
    );
});

test("a caller waits up to waitMs for a duplicate in another process, and not at all while its process drains", async () => {
  const { process, run, calls, messages } = start();
  const [a, b, c] = [process("a"), process("b"), process("c")];
  const { open, opened } = gate();
  const running = run(a, () => after(opened, () => answer("one")));
  await expect.poll(() => calls).toContain("take");
  expect(await settled(run(b, async () => answer("two")))).toBe("request_in_progress");
  expect(messages()).toContain("once.conflicted");
  c.draining.abort();
  const before = calls.filter((call) => call === "wait").length;
  expect(await settled(run(c, async () => answer("two")))).toBe("request_in_progress");
  expect(calls.filter((call) => call === "wait").length).toBe(before);
  open();
  expect((await running).isReplay).toBe(false);
});

test.each([false, true])(
  "a duplicate in another process shares its answer when it succeeds; a failure (%s) lets the next one run",
  async (fails) => {
    const { open, opened } = gate();
    const fate = (call: string): Fate => {
      if (call === "wait") open();
      return "fine";
    };
    const { process, run, calls } = start({ waitMs: 60_000, fate });
    const [a, b] = [process("a"), process("b")];
    const running = settled(
      run(a, async () => {
        await opened;
        if (fails) throw new Error("no");
        return answer("one");
      }),
    );
    await expect.poll(() => calls).toContain("take");
    expect((await run(b, async () => answer("two"))).answer.body).toBe(fails ? "two" : "one");
    await running;
  },
);

test("concurrent duplicates in one process share a run and its error, each within its own time limit", async () => {
  const slow = start({ waitMs: 20 });
  const [busy, end] = [slow.process("a"), gate()];
  const endless = slow.run(busy, () => after(end.opened, () => answer("one")));
  expect(await settled(slow.run(busy, async () => answer("two")))).toBe("request_in_progress");
  end.open();
  await endless;

  const { process, run, calls, messages } = start({ waitMs: 60_000 });
  const a = process("a");
  const { open, opened } = gate();
  const leader = run(a, () => after(opened, () => answer("one", { headers: { "x-anew": "n" } })));
  const duplicate = run(a, async () => answer("two"));
  const gone = new AbortController();
  const leaving = run(a, async () => answer("two"), {}, gone.signal);
  gone.abort(new Error("gone"));
  expect(await settled(leaving)).toBe("gone");
  const already = run(a, async () => answer("two"), {}, AbortSignal.abort(new Error("never here")));
  expect(await settled(already)).toBe("never here");
  open();
  expect(await leader).toMatchObject({ isReplay: false });
  expect(await duplicate).toEqual({ answer: answer("one"), isReplay: true });
  expect(messages()).toContain("once.shared");
  expect(calls).toEqual(["take", "complete"]);

  const { open: fail, opened: failed } = gate();
  const write = { key: claimKey(["test"], "failing") };
  const [one, two] = [0, 1].map(() =>
    run(a, () => after(failed, () => Promise.reject(new Error("both"))), write),
  );
  fail();
  expect([await settled(one as Promise<unknown>), await settled(two as Promise<unknown>)]).toEqual([
    "both",
    "both",
  ]);
});

test("a draining process does not wait for duplicates", async () => {
  const { process, run } = start();
  const a = process("a");
  const { open, opened } = gate();
  const leader = run(a, () => after(opened, () => answer("one")));
  const waiting = settled(run(a, async () => answer("two")));
  await Promise.resolve();
  a.draining.abort();
  expect(await waiting).toBe("request_in_progress");
  expect(await settled(run(a, async () => answer("two")))).toBe("request_in_progress");
  open();
  await leader;
});

test("a run continues while any caller waits, and stops when all have left; a later caller starts a new run", async () => {
  const { process, run } = start({ waitMs: 60_000 });
  const a = process("a");
  const [first, second] = [new AbortController(), new AbortController()];
  const signals: (AbortSignal | undefined)[] = [];
  const { open, opened } = gate();
  const work: Work = async ({ signal }) => {
    signals.push(signal);
    await opened;
    signal?.throwIfAborted();
    return answer("one");
  };
  const one = settled(run(a, work, {}, first.signal));
  const two = settled(run(a, work, {}, second.signal));
  await expect.poll(() => signals.length).toBe(1);
  first.abort(new Error("first is gone"));
  expect(signals[0]?.aborted).toBe(false);
  second.abort(new Error("second is gone"));
  expect(signals[0]?.aborted).toBe(true);
  const third = run(a, async () => answer("anew"));
  open();
  expect([await one, await two]).toEqual(["second is gone", "second is gone"]);
  expect((await third).answer.body).toBe("anew");
});

test("a duplicate that joins an abandoned run starts a new one", async () => {
  const { process, run, calls } = start({ waitMs: 60_000 });
  const a = process("a");
  const leaving = new AbortController();
  const { open, opened } = gate();
  const leader = settled(
    run(
      a,
      ({ signal }) =>
        after(opened, () => (signal?.aborted ? Promise.reject(signal.reason) : answer("one"))),
      {},
      leaving.signal,
    ),
  );
  await expect.poll(() => calls).toContain("take");
  leaving.abort(new Error("gone"));
  const duplicate = run(a, async () => answer("anew"));
  open();
  expect(await leader).toBe("gone");
  expect((await duplicate).answer.body).toBe("anew");
});

test("an answer with cookies is neither stored nor shared", async () => {
  const { process, run, world } = start();
  const a = process("a");
  const { open, opened } = gate();
  let runs = 0;
  const work: Work = () => after(opened, () => answer(String(++runs), { cookies: ["s=1"] }));
  const both = [run(a, work), run(a, work)];
  open();
  expect((await Promise.all(both)).map(({ answer: { body, cookies } }) => [body, cookies])).toEqual(
    [
      ["1", ["s=1"]],
      ["2", ["s=1"]],
    ],
  );
  expect(world.records.size).toBe(0);
});

test("refused, failed and oversized results are not stored, and the work can be done again", async () => {
  const { process, run, world } = start();
  const a = process("a");
  expect((await run(a, async () => answer("no", { status: 409 }))).answer.status).toBe(409);
  expect(await settled(run(a, async () => Promise.reject(new Error("failed"))))).toBe("failed");
  const assertFits = () => {
    throw new FrameworkError("response_too_large", "too large");
  };
  expect(await settled(run(a, async () => answer("x"), { assertFits }))).toBe("response_too_large");
  expect(world.records.size).toBe(0);
  expect((await run(a, async () => answer("yes"))).answer.body).toBe("yes");
});

test("a claim that cannot be released or completed is logged, and the caller gets the same result", async () => {
  const { process, run, lines } = start({
    fate: (call) => (["release", "complete"].includes(call) ? "fails" : "fine"),
  });
  const a = process("a");
  expect(await settled(run(a, async () => Promise.reject(new Error("failed"))))).toBe("failed");
  expect(
    (await run(a, async () => answer("done"), { key: claimKey(["test"], "r2") })).answer.body,
  ).toBe("done");
  expect(lines).toContainEqual([
    "once.release_failed",
    expect.objectContaining({ error: "internal_error" }),
  ]);
  expect(lines).toContainEqual([
    "once.completion_failed",
    expect.objectContaining({ error: "internal_error" }),
  ]);
});

test("a claim whose response was lost is recognised as the caller's own; one that cannot be taken fails the write", async () => {
  const lost = start({
    fate: (call, nth) => (call === "take" && nth === 1 ? "answer lost" : "fine"),
  });
  expect((await lost.run(lost.process("a"), async () => answer("one"))).answer.body).toBe("one");
  const down = start({ fate: () => "fails" });
  expect(await settled(down.run(down.process("a"), async () => answer("one")))).toBe("refused");
});

const taken = (world: World, record: ClaimRecord | undefined) =>
  world.records.set(text, record ?? takenClaim("other", world.nowMs, { fingerprint: "f" }));

/** Lets the other one go while it is waited for. */
function lettingGo() {
  const shared: { world?: World } = {};
  const fate = (call: string): Fate => {
    if (call === "wait") shared.world?.records.delete(text);
    return "fine";
  };
  return { shared, fate };
}

test.each([
  [
    "has done it",
    (world: World) =>
      completedClaim("other", world.nowMs, {
        fingerprint: "f",
        result: { data: Buffer.from(`\0${JSON.stringify(answer("theirs"))}`) },
      }),
    "theirs",
    true,
  ],
  [
    "is at work",
    (world: World) => takenClaim("other", world.nowMs, { fingerprint: "f" }),
    "ours",
    false,
  ],
  ["has let go", () => undefined, "ours", false],
])(
  "a run that was overtaken by one that %s gives the answer that counts",
  async (_case, theirs, body, isReplay) => {
    const { shared, fate } = lettingGo();
    const { process, run, world, messages } = start({ fate });
    const outcome = await run(process("a"), async () => {
      const record = theirs(world);
      taken(world, record);
      if (record === undefined) shared.world = world;
      return answer("ours");
    });
    expect(outcome).toMatchObject({ answer: { body }, isReplay });
    expect(messages()).toContain("once.fenced");
    if (_case === "has let go")
      expect(world.records.get(text)).toMatchObject({
        status: "COMPLETED",
        owner: expect.stringMatching(/^a-/),
      });
  },
);

test.each([
  ["has done it", true, "answered"],
  ["is at work", false, "request_in_progress"],
])("a commit that was overtaken by one that %s writes nothing", async (_case, isDone, outcome) => {
  const { process, run, world, messages } = start();
  const running = run(process("a"), async ({ commit }) => {
    const data = Buffer.from(`\0${JSON.stringify(answer("theirs"))}`);
    taken(
      world,
      isDone
        ? completedClaim("other", world.nowMs, { fingerprint: "f", result: { data } })
        : undefined,
    );
    await commit([{ Put: { n: 1 } }], answer("ours"));
    return answer("ours");
  });
  expect(await settled(running)).toBe(outcome);
  expect(world.effects).toEqual([]);
  if (!isDone) expect(messages()).toContain("once.lost");
});

test("a failed run that lost its lease releases the claim if nobody else holds it", async () => {
  const { shared, fate } = lettingGo();
  const { process, run, world, calls } = start({ fate });
  const a = process("a");
  const running = run(a, async ({ commit }) => {
    taken(world, undefined);
    shared.world = world;
    await commit([{ Put: { n: 1 } }], answer("ours"));
    return answer("ours");
  });
  expect(await settled(running)).toBe("request_in_progress");
  expect(world.records.size).toBe(0);
  expect(calls).toContain("release");
});

test("a lease is renewed while the work runs, and not after it is lost", async () => {
  const { process, run, world, calls } = start();
  const a = process("a");
  await run(a, async () => {
    const before = world.records.get(text);
    world.nowMs += 10_000;
    a.timers.tick();
    await expect.poll(() => calls).toContain("renew");
    expect(world.records.get(text)).toMatchObject({
      leaseUntilMs: Number((before as { leaseUntilMs: number }).leaseUntilMs) + 10_000,
    });
    taken(world, undefined);
    a.timers.tick();
    await expect.poll(() => calls.filter((call) => call === "renew").length).toBe(2);
    await new Promise(setImmediate);
    a.timers.tick();
    return answer("ours");
  });
  expect(calls.filter((call) => call === "renew").length).toBe(2);
});

test("a renewal that fails is retried at the next tick", async () => {
  const { process, run, calls } = start({ fate: (call) => (call === "renew" ? "fails" : "fine") });
  const a = process("a");
  await run(a, async () => {
    for (let n = 1; n <= 2; n++) {
      a.timers.tick();
      await expect.poll(() => calls.filter((call) => call === "renew").length).toBe(n);
    }
    return answer("done");
  });
});

test("a run that times out keeps its claim until the lease ends", async () => {
  const { process, run, world } = start();
  const deadline = new AbortController();
  const running = run(
    process("a"),
    async ({ signal }) => {
      deadline.abort(new FrameworkError("timeout", "too long"));
      signal?.throwIfAborted();
      return answer("late");
    },
    {},
    deadline.signal,
  );
  expect(await settled(running)).toBe("timeout");
  expect(world.records.get(text)).toMatchObject({ status: "INPROGRESS" });
});

test("the committed answer stands, even if the handler throws afterwards", async () => {
  const { process, run, world, calls, lines } = start();
  const a = process("a");
  const outcome = await run(a, async ({ commit }) => {
    await commit(
      [{ Put: { n: 1 } }],
      answer("committed", { headers: { etag: "1", "x-anew": "n" } }),
    );
    throw new Error("afterwards");
  });
  expect(outcome).toEqual({
    answer: answer("committed", { headers: { etag: "1", "x-anew": "n" } }),
    isReplay: false,
  });
  expect(lines).toContainEqual([
    "once.threw_after_commit",
    expect.objectContaining({ message: "afterwards" }),
  ]);
  expect(calls).toEqual(["take", "commit"]);
  expect((await run(process("b"), async () => answer("again"))).answer).toEqual(
    answer("committed", { headers: { etag: "1" } }),
  );
  expect(world.effects.length).toBe(1);
});

test("a run waits for a commit that the handler does not await", async () => {
  const { process, run, world } = start();
  await run(process("a"), async ({ commit }) => {
    void commit([{ Put: { n: 1 } }], answer("committed"));
    return answer("returned");
  });
  expect(world.effects.length).toBe(1);
  expect(world.records.get(text)?.status).toBe("COMPLETED");
});

test("a run commits only once, only an answer that can be replayed, and nothing after it was told to stop", async () => {
  const { process, run, world } = start();
  const stopped = new AbortController();
  await run(process("a"), async ({ commit }) => {
    await expect(commit([], answer("x", { cookies: ["a=1"] }))).rejects.toThrow("cookies");
    await expect(commit([], answer("x", { status: 404 }))).rejects.toThrow("404");
    await commit([], answer("done"));
    await expect(commit([], answer("twice"))).rejects.toThrow("a run commits once");
    return answer("done");
  });
  const running = run(
    process("b"),
    async ({ commit }) => {
      stopped.abort(new Error("stop"));
      await commit([{ Put: {} }], answer("x"));
      return answer("x");
    },
    { key: claimKey(["test"], "r2") },
    stopped.signal,
  );
  expect(await settled(running)).toBe("stop");
  expect(world.effects).toEqual([]);
});

test("a conflict is retried and a lost response is resolved, with a single write", async () => {
  const fates: Fate[] = ["conflict", "conflict", "fails", "answer lost"];
  const { process, run, world, calls } = start({
    fate: (call, nth) => (call === "commit" ? (fates[nth - 1] ?? "fine") : "fine"),
  });
  const outcome = await run(process("a"), commits);
  expect(outcome.answer.body).toBe("done");
  expect(world.effects.length).toBe(1);
  expect(calls.filter((call) => call === "commit").length).toBe(4);
});

test("endless conflicts and an unavailable store fail the commit; if in doubt, the claim stays", async () => {
  const busy = start({ fate: (call) => (call === "commit" ? "conflict" : "fine") });
  expect(await settled(busy.run(busy.process("a"), commits))).toContain("TransactionConflict");
  expect(busy.world.records.size).toBe(0);
  const down = start({ fate: (call) => (["commit", "read"].includes(call) ? "fails" : "fine") });
  expect(await settled(down.run(down.process("a"), commits))).toBe("refused");
  expect(down.messages()).toContain("once.commit_uncertain");
  expect(down.world.records.get(text)?.status).toBe("INPROGRESS");
});

test("a transaction counts as written when its response is lost and its retry is cancelled", async () => {
  const { process, run, world } = start({
    fate: (call, nth) =>
      call === "commit" && nth === 1
        ? "answer lost"
        : call === "read" && nth === 1
          ? "fails"
          : "fine",
  });
  const outcome = await run(process("a"), commits);
  expect(outcome.answer.body).toBe("done");
  expect(world.effects.length).toBe(1);
});

test("CommitConditionError names the item and the reason", () => {
  expect(new CommitConditionError(2, "because")).toMatchObject({
    status: 409,
    code: "condition_failed",
    index: 2,
    reason: "because",
    name: "CommitConditionError",
  });
});

test("a caller that has already left gets its abort reason", async () => {
  const { process, run } = start();
  const work: Work = async ({ signal }) => {
    signal?.throwIfAborted();
    return answer("x");
  };
  expect(await settled(run(process("a"), work, {}, AbortSignal.abort(new Error("gone"))))).toBe(
    "gone",
  );
});

test("a repeated message extends its claim, unless other work may reuse the key", async () => {
  const day = 24 * 3_600_000;
  for (const [hasReusableKey, afterMs] of [
    [false, day],
    [true, 12 * 3_600_000],
  ] as const) {
    const { world, process, run, calls } = start();
    const message = { kind: "message", retentionMs: day, hasReusableKey } as const;
    await run(process("p"), async () => answer("done"), message);
    world.nowMs += 60_000;
    await run(process("p"), async () => answer("again"), message);
    expect(calls).not.toContain("extend"); // it came at once
    world.nowMs += 12 * 3_600_000 - 60_000;
    await run(process("p"), async () => answer("again"), message);
    expect(world.records.get(text)?.expiresAt).toBe(Math.ceil((world.nowMs + afterMs) / 1000));
  }
});
