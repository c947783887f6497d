import { getEventListeners } from "node:events";
import { describe, expect, test, vi } from "vitest";
import { storeOf, World } from "../../../test/once/world.ts";
import { recordedMetrics } from "../../../test/support/recorded-metrics.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { WriteAnswer } from "./answer.ts";
import { claimKey, defaultRetentionMs, keyText, skewMs } from "./claim.ts";
import type { RunWork } from "./claimed-run.ts";
import type { OnceClaim } from "./claims.ts";
import { createOnce, type OnceOptions } from "./once.ts";

const key = claimKey(["test"], "r1");
const hourMs = 3_600_000;
const answer = (body: string, more: Partial<WriteAnswer> = {}): WriteAnswer => ({
  status: 200,
  headers: {},
  cookies: [],
  body,
  ...more,
});
type Work = RunWork<WriteAnswer>;

/** One process over a store of its own. `wait` of its schedule records instead of waiting. */
function start(options: Partial<OnceOptions> = {}) {
  const world = new World();
  const calls: string[] = [];
  const lines: [string, unknown][] = [];
  const waits: [ms: number, stop: readonly AbortSignal[]][] = [];
  const draining = new AbortController();
  const measured = recordedMetrics();
  const once = createOnce({
    store: storeOf(world, { isAlive: true, name: "p" }, async (call) => {
      calls.push(call);
      return "fine";
    }),
    clock: { now: () => world.nowMs },
    schedule: {
      wait: async (ms, stop) => void waits.push([ms, stop]),
      repeat: () => () => undefined,
      random: () => 0.5,
      now: () => world.nowMs,
    },
    waitMs: hourMs,
    draining: draining.signal,
    metrics: measured.metrics,
    ...options,
  });
  const line = (message: string, data?: unknown) => void lines.push([message, data]);
  const log: Logger = { info: line, warn: line, error: line, debug: line, child: () => log };
  const run = (work: Work, claim: Partial<OnceClaim> = {}, signal?: AbortSignal) =>
    once.run({
      claim: { kind: "write", key, replayedHeaders: ["x-more"], deadlineMs: undefined, ...claim },
      logPrefix: "once",
      log,
      signal,
      work,
      answerOf: (result) => result,
    });
  /** A run whose work lasts until `end` is called. Resolves once the work has begun. */
  const begin = async (claim: Partial<OnceClaim> = {}, caller?: AbortSignal) => {
    let end: (given: WriteAnswer | Error) => void = () => undefined;
    const ended = new Promise<WriteAnswer>((resolve, reject) => {
      end = (given) => (given instanceof Error ? reject(given) : resolve(given));
    });
    const seen: { signal?: AbortSignal | undefined } = {};
    let outcome: ReturnType<typeof run> | undefined;
    await new Promise<void>((begun) => {
      outcome = run(
        ({ signal }) => {
          seen.signal = signal;
          begun();
          return ended;
        },
        claim,
        caller,
      );
    });
    // Safe cast: the outcome is set before the work begins.
    return { end, outcome: outcome as ReturnType<typeof run>, signal: () => seen.signal };
  };
  const counted = () => {
    const sums = Object.entries(measured.sums());
    return Object.fromEntries(sums.map(([name, n]) => [name.replace("keelson.claims ", ""), n]));
  };
  return { once, run, begin, world, calls, lines, waits, draining, counted };
}

const never: Work = () => Promise.reject(new Error("no work"));
const replayed = (body: string, more: Partial<WriteAnswer> = {}) => ({
  kind: "replayed",
  answer: answer(body, more),
});

test("a pause before a retry doubles with each attempt up to the sixth, and nothing cuts it short", async () => {
  const { once, waits } = start();
  for (const attempt of [1, 2, 6, 7, 60]) await once.pause(attempt);
  expect(waits).toEqual([25, 50, 800, 800, 800].map((ms) => [ms, []]));
});

test("each claim is taken for an owner of its own", async () => {
  let owners = 0;
  const named = start({ newOwner: () => `o${++owners}` });
  await named.run(async () => answer("one"));
  expect(named.world.records.get(keyText(key))).toMatchObject({ owner: "o1" });
  const { run, world } = start();
  const [a, b] = [claimKey(["test"], "a"), claimKey(["test"], "b")];
  for (const other of [a, b]) await run(async () => answer("one"), { key: other });
  expect(new Set([...world.records.values()].map(({ owner }) => owner)).size).toBe(2);
});

test("a message shares neither a run nor an answer in memory: each delivery asks the store", async () => {
  const { begin, run, calls } = start();
  const first = await begin({ kind: "message" });
  expect(await run(never, { kind: "message" })).toMatchObject({ kind: "running" });
  first.end(answer("done"));
  await first.outcome;
  expect(await run(never, { kind: "message" })).toEqual({ kind: "replayed", answer: undefined });
  expect(calls.filter((call) => call === "take")).toHaveLength(3);
});

describe("a repeat", () => {
  test("in the same process gets the answer from memory, with the declared headers, and no store call", async () => {
    const { run, calls, lines, counted } = start();
    const headers = { etag: "1", "x-more": "m", "x-anew": "n" };
    expect(await run(async () => answer("one", { headers }))).toMatchObject({ kind: "done" });
    expect(await run(never)).toEqual(replayed("one", { headers: { etag: "1", "x-more": "m" } }));
    expect(calls).toEqual(["take", "complete"]);
    expect(lines.at(-1)).toEqual(["once.replayed", { fromMemory: true }]);
    expect(counted()).toEqual({ "write taken": 1, "write replayed": 1 });
  });

  test("asks the store as soon as the answer may have expired by another process's clock", async () => {
    const { run, calls, world } = start();
    await run(async () => answer("one"));
    world.nowMs += defaultRetentionMs - skewMs - 1;
    await run(never);
    expect(calls).toEqual(["take", "complete"]);
    world.nowMs += 1;
    expect(await run(never)).toEqual(replayed("one"));
    expect(calls).toEqual(["take", "complete", "take"]);
    world.nowMs += skewMs;
    expect(await run(async () => answer("two"))).toMatchObject({ kind: "done" });
  });

  test("with another fingerprint is refused, during the run and after it, if the claim compares them", async () => {
    const { begin, run, counted } = start();
    const first = await begin({ fingerprint: "f" });
    const other = { fingerprint: "g", comparesFingerprint: true };
    const refused = { code: "idempotency_key_reused" };
    await expect(run(never, other)).rejects.toMatchObject(refused);
    const same = run(never, { fingerprint: "f", comparesFingerprint: true });
    const any = run(never, { fingerprint: "g" });
    first.end(answer("one"));
    expect([await same, await any]).toEqual([replayed("one"), replayed("one")]);
    await expect(run(never, other)).rejects.toMatchObject(refused);
    expect(await run(never, { ...other, fingerprint: "f" })).toEqual(replayed("one"));
    expect(await run(never, { fingerprint: "g" })).toEqual(replayed("one"));
    expect(counted()).toMatchObject({ "write replayed": 4, "write waited": 2 });
  });

  test("of a run that failed does the work again", async () => {
    const { run, calls } = start();
    await expect(run(never)).rejects.toThrow("no work");
    expect(await run(async () => answer("two"))).toMatchObject({ answer: answer("two") });
    expect(calls).toEqual(["take", "release", "take", "complete"]);
  });
});

describe("a duplicate in the same process", () => {
  test("shares the run and gets what a repeat gets; a run with another key goes on by itself", async () => {
    const { begin, run, lines, counted, calls } = start();
    const first = await begin();
    const duplicate = run(never);
    const other = await begin({ key: claimKey(["test"], "r2") });
    first.end(answer("one", { headers: { "x-more": "m", "x-anew": "n" } }));
    expect(await duplicate).toEqual(replayed("one", { headers: { "x-more": "m" } }));
    expect(lines.at(-1)).toEqual(["once.shared", undefined]);
    expect(counted()).toEqual({ "write taken": 2, "write waited": 1, "write replayed": 1 });
    other.end(answer("other"));
    expect(await other.outcome).toMatchObject({ answer: answer("other") });
    expect(calls).toEqual(["take", "take", "complete", "complete"]);
  });

  test("shares the error of the run as well", async () => {
    const { begin, run, counted } = start();
    const first = await begin();
    const duplicate = run(never);
    const error = new Error("failed");
    first.end(error);
    await expect(first.outcome).rejects.toBe(error);
    await expect(duplicate).rejects.toBe(error);
    expect(counted()).toEqual({ "write taken": 1 });
  });

  test("that has waited long enough is refused, and the run goes on", async () => {
    const { begin, run, counted } = start({ waitMs: 0 });
    const first = await begin();
    await expect(run(never)).rejects.toMatchObject({ code: "request_in_progress" });
    expect(counted()).toEqual({ "write taken": 1, "write conflicted": 1 });
    expect(first.signal()?.aborted).toBe(false);
    first.end(answer("one"));
    expect(await first.outcome).toMatchObject({ answer: answer("one") });
  });

  test("waits as long as it takes if its limit is longer than the longest timer", async () => {
    const { begin, run } = start({ waitMs: Number.MAX_SAFE_INTEGER });
    const first = await begin();
    const timers = vi.spyOn(globalThis, "setTimeout");
    const duplicate = run(never);
    const limits = timers.mock.calls.map(([, ms]) => ms);
    timers.mockRestore();
    first.end(answer("one"));
    expect(await duplicate).toMatchObject({ answer: answer("one") });
    expect(limits).toEqual([2_147_483_647]);
  });

  test("is refused when the process drains, whether it waits already or comes later", async () => {
    const { begin, run, draining } = start();
    const first = await begin();
    const waiting = Array.from({ length: 20 }, () => run(never));
    expect(getEventListeners(draining.signal, "abort")).toHaveLength(1);
    draining.abort();
    for (const duplicate of waiting)
      await expect(duplicate).rejects.toMatchObject({ code: "request_in_progress" });
    await expect(run(never)).rejects.toMatchObject({ code: "request_in_progress" });
    first.end(answer("one"));
    await first.outcome;
  });

  test("whose caller disconnects gets the reason, and the run goes on for the first caller", async () => {
    const { begin, run, calls } = start();
    const first = await begin({}, new AbortController().signal);
    const leaving = new AbortController();
    const duplicate = run(never, {}, leaving.signal);
    leaving.abort(new Error("gone"));
    await expect(duplicate).rejects.toThrow("gone");
    await expect(run(never, {}, leaving.signal)).rejects.toThrow("gone");
    expect(first.signal()?.aborted).toBe(false);
    expect(getEventListeners(leaving.signal, "abort")).toEqual([]);
    first.end(answer("one"));
    expect(await first.outcome).toMatchObject({ kind: "done" });
    expect(calls).toEqual(["take", "complete"]);
  });

  test("runs itself, after the run, if that set cookies or every caller of it has disconnected", async () => {
    for (const isAbandoned of [false, true]) {
      const { begin, run, counted } = start();
      const caller = new AbortController();
      const first = await begin({}, caller.signal);
      if (isAbandoned) caller.abort(new Error("gone"));
      let hasEnded = false;
      const duplicate = run(async () => answer(`anew, after the run: ${hasEnded}`));
      await new Promise(setImmediate); // enough for the duplicate to begin, if it did not wait
      hasEnded = true;
      first.end(isAbandoned ? new Error("stopped") : answer("one", { cookies: ["s=1"] }));
      if (isAbandoned) await expect(first.outcome).rejects.toThrow("stopped");
      else expect(await first.outcome).toMatchObject({ answer: { cookies: ["s=1"] } });
      expect(await duplicate).toMatchObject({
        kind: "done",
        answer: answer("anew, after the run: true"),
      });
      expect(counted()).toEqual({ "write taken": 2 });
    }
  });
});

describe("a run that never ends, of callers who have all disconnected", () => {
  /** A run whose time is over in ten milliseconds, for other processes as well. */
  const lost = async () => {
    const started = start();
    const caller = new AbortController();
    const first = await started.begin({ deadlineMs: started.world.nowMs + 10 }, caller.signal);
    caller.abort(new Error("gone"));
    started.world.nowMs += skewMs;
    return { ...started, first };
  };

  test("holds up no duplicate once its lease is over, and ends without disturbing the next run", async () => {
    const { world, first, begin, run, calls } = await lost();
    world.nowMs += 11;
    const second = await begin();
    first.end(new Error("stopped"));
    await expect(first.outcome).rejects.toThrow();
    const duplicate = run(never);
    second.end(answer("two"));
    expect(await second.outcome).toMatchObject({ kind: "done" });
    expect(await duplicate).toEqual(replayed("two"));
    expect(calls.filter((call) => call === "complete")).toHaveLength(1);
  });

  test("holds up a duplicate that already waits no longer", async () => {
    const { world, first, run } = await lost();
    const duplicate = run(async () => answer("anew"));
    world.nowMs += 11;
    expect(await duplicate).toMatchObject({ kind: "done", answer: answer("anew") });
    first.end(new Error("stopped"));
    await expect(first.outcome).rejects.toThrow();
  });

  test("holds up duplicates while other processes count it as running", async () => {
    const { world, first, run } = await lost();
    world.nowMs += 10;
    let hasEnded = false;
    const duplicate = run(async () => answer(`after the run: ${hasEnded}`));
    await new Promise(setImmediate); // enough for the duplicate to begin, if it did not wait
    hasEnded = true;
    first.end(new Error("stopped"));
    await expect(first.outcome).rejects.toThrow("stopped");
    expect(await duplicate).toMatchObject({ answer: answer("after the run: true") });
  });
});

describe("the signal of a shared run", () => {
  test("aborts with the last caller's reason, and not before", async () => {
    const { begin, run } = start();
    const [first, last] = [new AbortController(), new AbortController()];
    const { signal, end, outcome } = await begin({}, first.signal);
    const duplicate = run(never, {}, last.signal);
    first.abort(new Error("first"));
    expect(signal()?.aborted).toBe(false);
    last.abort(new Error("last"));
    expect(signal()?.reason).toEqual(new Error("last"));
    await expect(duplicate).rejects.toThrow("last");
    end(new Error("stopped"));
    await expect(outcome).rejects.toThrow("stopped");
  });

  test("has aborted from the start if its only caller had already disconnected", async () => {
    const { begin } = start();
    const { signal, end, outcome } = await begin({}, AbortSignal.abort(new Error("gone")));
    expect(signal()?.reason).toEqual(new Error("gone"));
    end(answer("one"));
    await outcome;
  });

  test("does not abort once the run is over, and the run lets go of its caller", async () => {
    const { begin } = start();
    const caller = new AbortController();
    const { signal, end, outcome } = await begin({}, caller.signal);
    expect(getEventListeners(caller.signal, "abort")).toHaveLength(1);
    end(answer("one"));
    await outcome;
    expect(getEventListeners(caller.signal, "abort")).toEqual([]);
    caller.abort();
    expect(signal()?.aborted).toBe(false);
  });
});
