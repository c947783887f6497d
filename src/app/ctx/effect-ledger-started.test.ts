import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { StartedEffects } from "./effect-ledger.ts";

/** A call that ends when the test says so. */
function pending<Value>() {
  let end: (value: Value) => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const promise = new Promise<Value>((resolve, reject) => {
    [end, fail] = [resolve, reject];
  });
  return { work: () => promise, end, fail };
}

/** Whether a promise has ended by now. */
async function hasEnded(promise: Promise<unknown>): Promise<boolean> {
  let ended = false;
  const note = () => {
    ended = true;
  };
  promise.then(note, note);
  await turn();
  return ended;
}

const lost: unknown[] = [];
const started = () => {
  lost.length = 0;
  return new StartedEffects((reason) => lost.push(reason));
};
const fails = (message: string) => async () => {
  throw new Error(message);
};

describe("before an attempt to commit", () => {
  test("waits for effects already started, but not for those started during the wait", async () => {
    const effects = started();
    const first = pending<string>();
    const call = effects.start(first.work);
    const ready = effects.beforeAttempt(undefined);
    expect(await hasEnded(ready)).toBe(false);
    first.end("done");
    await ready;
    expect(await call).toBe("done");
  });

  test("throws the failure of a pending call even if its caller handles it", async () => {
    const effects = started();
    const first = pending();
    const looked = expect(effects.start(first.work)).rejects.toThrow("bad");
    const ready = effects.beforeAttempt(undefined);
    first.fail(new Error("bad"));
    await expect(ready).rejects.toThrow("bad");
    await looked;
    await effects.beforeAttempt(undefined); // it belongs to the attempt before
  });

  test("throws an unhandled failure once", async () => {
    const effects = started();
    effects.start(fails("forgotten"));
    await turn();
    await expect(effects.beforeAttempt(undefined)).rejects.toThrow("forgotten");
    await effects.beforeAttempt(undefined);
    await effects.atEnd(undefined);
  });

  test.each<[string, (call: Promise<unknown>) => unknown]>([
    ["await", async (call) => await call],
    ["then", (call) => call.then(() => undefined)],
    ["catch", (call) => call.catch(() => undefined)],
    ["finally", (call) => call.finally(() => undefined)],
    ["Promise.all", (call) => Promise.all([call])],
    ["Promise.allSettled", (call) => Promise.allSettled([call])],
    ["an async function that returns it", async (call) => call],
  ])("leaves a failure handled by %s to the caller", async (_, look) => {
    const effects = started();
    await Promise.resolve(look(effects.start(fails("seen")))).catch(() => undefined);
    await effects.beforeAttempt(undefined);
    await effects.atEnd(undefined);
  });

  test("leaves the failure of a call started during the wait to the end of the run", async () => {
    const effects = started();
    const first = pending();
    effects.start(first.work);
    const ready = effects.beforeAttempt(undefined);
    effects.start(fails("during"));
    await turn();
    first.end(undefined);
    await ready;
    await expect(effects.atEnd(undefined)).rejects.toThrow("during");
  });

  test("an attempt does not wait for itself", async () => {
    const effects = started();
    expect(
      await effects.attempt(async () => {
        await effects.beforeAttempt(undefined);
        return "committed";
      }),
    ).toBe("committed");
  });

  test("does not wait once the signal has aborted", async () => {
    const effects = started();
    effects.start(() => new Promise(() => undefined));
    await effects.beforeAttempt(AbortSignal.abort());
    const controller = new AbortController();
    const ready = effects.beforeAttempt(controller.signal);
    expect(await hasEnded(ready)).toBe(false);
    controller.abort();
    await ready;
    await effects.atEnd(controller.signal);
  });
});

describe("at the end of the run", () => {
  test("waits for effects, attempts and chained calls that are not awaited", async () => {
    const effects = started();
    const [first, second, attempt] = [pending(), pending(), pending()];
    const chain = async () => {
      await effects.start(first.work);
      await effects.start(second.work);
    };
    chain();
    effects.attempt(attempt.work);
    const end = effects.atEnd(undefined);
    first.end(undefined);
    attempt.end(undefined);
    expect(await hasEnded(end)).toBe(false);
    second.end(undefined);
    await end;
  });

  test("throws the unhandled failure of an attempt, and no handled one", async () => {
    const unseen = started();
    unseen.attempt(fails("not committed"));
    await expect(unseen.atEnd(undefined)).rejects.toThrow("not committed");
    const seen = started();
    await expect(seen.attempt(fails("not committed"))).rejects.toThrow("not committed");
    await seen.atEnd(undefined);
  });
});

describe("after the end of the run", () => {
  test("reports an unhandled failure without ending the process", async () => {
    const effects = started();
    effects.end();
    effects.start(fails("too late"));
    await turn();
    await turn();
    expect(lost.map(String)).toEqual(["Error: too late"]);
  });

  test("leaves a handled failure to the caller", async () => {
    const effects = started();
    effects.end();
    await expect(effects.start(fails("too late"))).rejects.toThrow("too late");
    await turn();
    await turn();
    expect(lost).toEqual([]);
  });
});
