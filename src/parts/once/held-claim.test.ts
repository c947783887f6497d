import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { type ClaimKey, claimKey, keyText } from "./claim.ts";
import type { ClaimStore } from "./claim-store.ts";
import { Claim, processSchedule } from "./held-claim.ts";

const startMs = 1_700_000_000_000;
const fourteenDaysMs = 14 * 24 * 3_600_000;
const key: ClaimKey = claimKey(["test"], "r1");
type Options = ConstructorParameters<typeof Claim>[3];
type Call = readonly [name: string, ...given: unknown[]];

/** A claim of `ann` over a store that records each call and answers what `says` returns. */
function hold(options: Partial<Options> = {}, says: (name: string) => unknown = () => true) {
  const calls: Call[] = [];
  const call =
    (name: string) =>
    async (...given: unknown[]) => {
      calls.push([name, ...given]);
      return says(name);
    };
  const store = {
    renew: call("renew"),
    complete: call("complete"),
    release: call("release"),
    vacate: call("vacate"),
  } as unknown as ClaimStore; // safe: a held claim calls nothing else
  const now = { ms: startMs };
  const repeated: number[] = [];
  let task: (() => Promise<void>) | undefined;
  let stops = 0;
  const schedule = {
    wait: async () => undefined,
    repeat: (ms: number, given: () => Promise<void>) => {
      repeated.push(ms);
      task = given;
      return () => {
        stops += 1;
        task = undefined;
        calls.push(["stop"]);
      };
    },
    random: () => 0.5,
    now: () => 0,
  };
  const parts = { store, clock: { now: () => now.ms }, schedule, retentionMs: () => 300_000 };
  const claim = new Claim(parts, key, "ann", { generation: undefined, ...options });
  /** Lets the timer fire, unless it has been stopped. */
  const tick = async (afterMs = 10_000) => {
    now.ms += afterMs;
    await task?.();
  };
  return { claim, calls, now, repeated, tick, stops: () => stops };
}

const refuse = (message: string) => {
  throw new Error(message);
};

describe("renewal", () => {
  test("is tried every ten seconds, so that two may fail before a lease of thirty seconds ends", () => {
    expect(hold().repeated).toEqual([10_000]);
  });

  test("moves the end of the lease to thirty seconds from now, and keeps the record five minutes longer", async () => {
    const { calls, tick } = hold();
    expect(calls).toEqual([]);
    await tick();
    await tick();
    expect(calls).toEqual([
      ["renew", key, "ann", startMs + 40_000, (startMs + 340_000) / 1000],
      ["renew", key, "ann", startMs + 50_000, (startMs + 350_000) / 1000],
    ]);
  });

  test("keeps the record of a claim with a generation for fourteen days after the lease", async () => {
    const { calls, tick } = hold({ generation: "g" });
    await tick();
    expect(calls).toEqual([
      ["renew", key, "ann", startMs + 40_000, (startMs + 40_000 + fourteenDaysMs) / 1000],
    ]);
  });

  test("never leases beyond the deadline, and stops for good at the deadline", async () => {
    const { calls, tick } = hold({ deadlineMs: startMs + 20_000 });
    await tick(19_999);
    expect(calls).toEqual([["renew", key, "ann", startMs + 20_000, (startMs + 320_000) / 1000]]);
    await tick(1);
    await tick();
    expect(calls.slice(1)).toEqual([["stop"]]);
  });

  test("does not take place for a fixed lease, which can be abandoned all the same", async () => {
    const { claim, calls, repeated } = hold({ heldMs: 60_000 });
    claim.abandon();
    expect([repeated, calls]).toEqual([[], []]);
  });

  test("that finds another owner loses the claim, and the next one stops without a store call", async () => {
    const { claim, calls, tick } = hold({}, () => false);
    expect(claim.isLost()).toBe(false);
    await tick();
    expect(claim.isLost()).toBe(true);
    await tick();
    expect(calls.map(([name]) => name)).toEqual(["renew", "stop"]);
  });

  test("that fails in the store does not lose the claim, and is made up for by the next one", async () => {
    const { claim, calls, tick, stops } = hold({}, () => refuse("throttled"));
    await tick();
    await tick();
    expect(calls.map(([name]) => name)).toEqual(["renew", "renew"]);
    expect([claim.isLost(), stops()]).toEqual([false, 0]);
  });

  test("stops when the claim is known to be lost", async () => {
    const { claim, calls, tick } = hold();
    claim.lose();
    expect(claim.isLost()).toBe(true);
    await tick();
    expect(calls).toEqual([["stop"]]);
  });

  test("stops when the claim is abandoned, without a store call and without losing the claim", async () => {
    const { claim, calls, tick } = hold();
    claim.abandon();
    await tick();
    expect([calls, claim.isLost()]).toEqual([[["stop"]], false]);
  });
});

describe("paused work", () => {
  test("is not disturbed by a renewal, which resumes with the next tick", async () => {
    const { claim, calls, tick, stops } = hold();
    const result = await claim.paused(async () => {
      await tick();
      return "written";
    });
    expect([result, calls, stops()]).toEqual(["written", [], 0]);
    await tick();
    expect(calls.map(([name]) => name)).toEqual(["renew"]);
  });

  test("that fails passes its error on, and renewal resumes", async () => {
    const { claim, calls, tick } = hold();
    await expect(claim.paused(async () => refuse("conflict"))).rejects.toThrow("conflict");
    await tick();
    expect(calls.map(([name]) => name)).toEqual(["renew"]);
  });

  test("does not keep the timer alive beyond the deadline", async () => {
    const { claim, calls, tick } = hold({ deadlineMs: startMs + 10_000 });
    await claim.paused(() => tick());
    expect(calls).toEqual([["stop"]]);
  });
});

describe("completing", () => {
  test("stops renewal first, and then records whose work it was and what it gave", async () => {
    const result = { data: Buffer.from("done") };
    const known = { fingerprint: "f", generation: "g", execution: "e" };
    const { claim, calls } = hold({ ...known, retentionMs: 600_000 });
    expect(await claim.complete(result)).toBe(true);
    const expiresAt = (startMs + 600_000) / 1000;
    expect(calls).toEqual([
      ["stop"],
      ["complete", key, { status: "COMPLETED", owner: "ann", expiresAt, ...known, result }],
    ]);
    expect(claim.isLost()).toBe(false);
  });

  test("without a retention of its own uses the one that all claims have", async () => {
    const { claim, calls } = hold();
    expect(claim.retentionMs()).toBe(300_000);
    await claim.complete(undefined);
    expect(calls.at(-1)).toMatchObject([
      "complete",
      key,
      { expiresAt: (startMs + 300_000) / 1000, result: undefined },
    ]);
  });

  test("a claim that another owner has taken over loses it, without a second attempt", async () => {
    const { claim, calls } = hold({}, () => false);
    expect(await claim.complete(undefined)).toBe(false);
    expect(claim.isLost()).toBe(true);
    expect(calls.map(([name]) => name)).toEqual(["stop", "complete"]);
  });

  test("is tried a second time with the same result, and the second answer counts", async () => {
    for (const isOurs of [true, false]) {
      let attempts = 0;
      const says = () => {
        attempts += 1;
        return attempts === 1 ? refuse("socket hang up") : isOurs;
      };
      const result = { data: Buffer.from("done") };
      const { claim, calls } = hold({}, says);
      expect(await claim.complete(result)).toBe(isOurs);
      expect(claim.isLost()).toBe(!isOurs);
      expect(calls.slice(1)).toEqual([
        ["complete", key, expect.objectContaining({ result })],
        ["complete", key, expect.objectContaining({ result })],
      ]);
    }
  });

  test("that fails twice passes the error on, and does not lose the claim", async () => {
    const { claim, calls } = hold({}, () => refuse("unavailable"));
    await expect(claim.complete(undefined)).rejects.toThrow("unavailable");
    expect(calls).toHaveLength(3);
    expect(claim.isLost()).toBe(false);
  });
});

describe("releasing", () => {
  test("stops renewal and deletes a claim without a generation, even if IDs were derived", async () => {
    const { claim, calls } = hold();
    claim.seed();
    await claim.release();
    expect(calls).toEqual([["stop"], ["release", key, "ann"]]);
  });

  test("deletes a claim whose generation is new and has no derived IDs", async () => {
    const { claim, calls } = hold({ generation: "ann" });
    await claim.release();
    expect(calls).toEqual([["stop"], ["release", key, "ann"]]);
  });

  test("keeps the generation for fourteen days from now if IDs were derived from it, or it was inherited", async () => {
    const derived = hold({ generation: "ann" });
    derived.claim.seed();
    for (const { claim, calls, now } of [derived, hold({ generation: "bob" })]) {
      now.ms += 5_000;
      await claim.release();
      expect(calls).toEqual([
        ["stop"],
        ["vacate", key, "ann", (startMs + 5_000 + fourteenDaysMs) / 1000],
      ]);
    }
  });

  test("passes the store's error on", async () => {
    for (const generation of [undefined, "bob"]) {
      const { claim } = hold({ generation }, () => refuse("unavailable"));
      await expect(claim.release()).rejects.toThrow("unavailable");
    }
  });
});

test("the seed of derived IDs is the key and its generation, or the key alone without one", () => {
  expect(hold({ generation: "g" }).claim.seed()).toBe(`${keyText(key)} g`);
  expect(hold().claim.seed()).toBe(keyText(key));
});

test("a claim names its key, owner, fingerprint and generation", () => {
  expect(hold({ fingerprint: "f", generation: "g" }).claim).toMatchObject({
    key,
    owner: "ann",
    fingerprint: "f",
    generation: "g",
  });
});

test("a wait of the process ends as soon as any signal aborts, and lets go of all signals", async () => {
  const [first, second] = [new AbortController(), new AbortController()];
  const stop = [first.signal, second.signal];
  const listeners = () => stop.map((signal) => getEventListeners(signal, "abort").length);
  const waiting = processSchedule.wait(3_600_000, stop);
  expect(listeners()).toEqual([1, 1]);
  second.abort();
  await waiting;
  expect(listeners()).toEqual([0, 0]);
});
