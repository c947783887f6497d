import { expect, test } from "vitest";
import { type Fate, type Process, storeOf, timersOf, World } from "../../../test/once/world.ts";
import {
  claimKey,
  defaultRetentionMs,
  keyText,
  leaseMs,
  longestMessageMs,
  skewMs,
  takenClaim,
} from "./claim.ts";
import { createClaims, type TakeOptions } from "./claims.ts";
import type { Claim } from "./held-claim.ts";

const key = claimKey(["test"], "r1");
const text = keyText(key);

/** Takes claims over one store; `fate` decides what becomes of each call, by its name. */
function start(fate: (call: string, nth: number) => Fate = () => "fine") {
  const world = new World();
  const calls: string[] = [];
  const turn = async (call: string) => {
    calls.push(call);
    return fate(call, calls.filter((one) => one === call).length);
  };
  const process: Process = { isAlive: true, name: "p" };
  const timers = timersOf(world, process, turn);
  let owners = 0;
  const claims = createClaims({
    store: storeOf(world, process, turn),
    clock: { now: () => world.nowMs },
    schedule: timers,
    newOwner: () => `o${++owners}`,
  });
  const take = async (more: Partial<TakeOptions> = {}): Promise<Claim> => {
    const taken = await claims.take(key, { waitMs: 0, stop: [], hasGeneration: true, ...more });
    if (taken.kind !== "taken") throw new Error(`the claim is ${taken.kind}`);
    return taken.claim;
  };
  return { world, calls, claims, timers, take, record: () => world.records.get(text) };
}

/** Lets the lease of whoever holds the claim end. */
const stall = (world: World) => {
  world.nowMs += leaseMs + skewMs + 1;
};

test("a new claim has its own generation, in its record and in every ID derived from it", async () => {
  const { take, record, calls } = start();
  const claim = await take();
  expect(claim.generation).toBe("o1");
  expect(claim.seed()).toBe(`${text} o1`);
  expect(record()).toMatchObject({ status: "INPROGRESS", owner: "o1", generation: "o1" });
  expect(calls).toEqual(["take"]);
  await claim.complete(undefined);
  expect(record()).toMatchObject({ status: "COMPLETED", generation: "o1" });
});

test.each(["answer lost", "fails"] as const)(
  "a claim is taken by a second call if the first one ends with: %s",
  async (fate) => {
    const { take, record, calls } = start((_call, nth) => (nth === 1 ? fate : "fine"));
    expect((await take()).owner).toBe("o1");
    expect(calls).toEqual(["take", "take"]);
    expect(record()).toMatchObject({ status: "INPROGRESS", owner: "o1" });
  },
);

test("reusing a key after its claim has expired starts a new generation", async () => {
  const { world, take, record } = start();
  const first = await take();
  await first.complete(undefined);
  world.nowMs += defaultRetentionMs;
  const second = await take();
  expect(second.seed()).not.toBe(first.seed());
  expect(record()).toMatchObject({ owner: "o2", generation: "o2" });
});

test("a run that takes over a claim in progress inherits its generation, as does the next one", async () => {
  const { world, take, record, calls } = start();
  const first = await take();
  stall(world);
  const second = await take();
  stall(world);
  const third = await take();
  expect([second.seed(), third.seed()]).toEqual([first.seed(), first.seed()]);
  expect(record()).toMatchObject({ owner: "o3", generation: "o1" });
  // Taking over costs one call more: the first one finds the generation.
  expect(calls.filter((call) => call === "take")).toHaveLength(5);
});

test("a release keeps the generation if it was inherited or an ID was derived from it", async () => {
  const { world, take, record } = start();
  const first = await take();
  const seed = first.seed();
  await first.release();
  expect(record()).toMatchObject({
    status: "INPROGRESS",
    owner: "",
    leaseUntilMs: 0,
    generation: "o1",
  });
  const second = await take();
  await second.release();
  const third = await take();
  expect(third.seed()).toBe(seed);
  expect(record()?.expiresAt).toBe(Math.ceil((world.nowMs + leaseMs + longestMessageMs) / 1000));
});

test("a release deletes a claim that no ID was derived from", async () => {
  const { take, record } = start();
  await (await take()).release();
  expect(record()).toBeUndefined();
});

test("a claim without a generation derives IDs from its key alone, and is deleted on release", async () => {
  const { world, take, record, calls } = start();
  await take({ hasGeneration: false });
  expect(record()).toMatchObject({
    generation: undefined,
    expiresAt: (world.nowMs + leaseMs + defaultRetentionMs) / 1000,
  });
  stall(world);
  const claim = await take({ hasGeneration: false });
  expect(claim.seed()).toBe(text);
  await claim.release();
  expect(record()).toBeUndefined();
  expect(calls).toEqual(["take", "take", "release"]);
});

test("a claim of a version without generations is taken over without one", async () => {
  const { world, take } = start();
  world.records.set(text, takenClaim("old", world.nowMs));
  stall(world);
  const claim = await take();
  expect(claim.generation).toBeUndefined();
  expect(claim.seed()).toBe(text);
});

test("a claim released during a takeover starts a new generation", async () => {
  const { world, take } = start((call, nth) => {
    if (call === "take" && nth === 3) world.records.delete(text);
    return "fine";
  });
  (await take()).seed();
  stall(world);
  // The first attempt finds the stalled run, the second one a claim that is free.
  expect((await take()).generation).toBe("o1");
});

test("a run waits for a claim that another run takes over first", async () => {
  const { world, take, claims } = start((call, nth) => {
    if (call === "take" && nth === 3)
      world.records.set(text, { ...takenClaim("other", world.nowMs), generation: "o1" });
    return "fine";
  });
  await take();
  stall(world);
  expect(await claims.take(key, { waitMs: 0, stop: [], hasGeneration: true })).toMatchObject({
    kind: "running",
    record: { owner: "other" },
  });
});

test("a clock that is set back by an hour does not prolong the wait for another run", async () => {
  const { world, take, claims } = start((call, nth) => {
    if (call === "wait" && nth === 1) world.nowMs -= 3_600_000;
    return "fine";
  });
  await take();
  expect(await claims.take(key, { waitMs: 1_000, stop: [] })).toMatchObject({ kind: "running" });
  expect(world.nowMs).toBe(new World().nowMs - 3_600_000 + 1_000);
});

test("a lease is renewed three times before it ends, for as long as a run may be retried", async () => {
  const { world, take, timers, record } = start();
  await take();
  for (let renewals = 1; renewals <= 3; renewals += 1) {
    world.nowMs += leaseMs / 3;
    timers.tick();
    await Promise.resolve();
    await Promise.resolve();
  }
  expect(record()).toMatchObject({
    leaseUntilMs: world.nowMs + leaseMs,
    expiresAt: (world.nowMs + leaseMs + longestMessageMs) / 1000,
  });
});

test("the lease timer fires every ten seconds", async () => {
  const world = new World();
  const every: number[] = [];
  const process: Process = { isAlive: true, name: "p" };
  const timers = timersOf(world, process, async () => "fine");
  const claims = createClaims({
    store: storeOf(world, process, async () => "fine"),
    clock: { now: () => world.nowMs },
    schedule: {
      ...timers,
      repeat: (ms, task) => {
        every.push(ms);
        return timers.repeat(ms, task);
      },
    },
  });
  await claims.take(key, { waitMs: 0, stop: [] });
  expect(every).toEqual([leaseMs / 3]);
});

test("a free claim that the store never gives is an error after ten attempts", async () => {
  // A status that neither keelson nor Powertools writes.
  const odd = { ...takenClaim("o0", 0), leaseUntilMs: 0 };
  let takes = 0;
  const waits: number[] = [];
  const claims = createClaims({
    // Safe: taking asks for nothing else.
    store: {
      take: async () => {
        takes += 1;
        return odd;
      },
    } as never,
    clock: { now: () => 1_700_000_000_000 },
    schedule: {
      ...timersOf(new World(), { isAlive: true, name: "p" }, async () => "fine"),
      wait: async (ms) => void waits.push(ms),
    },
  });
  await expect(claims.take(key, { waitMs: 0, stop: [] })).rejects.toThrow(
    `the claim ${text} is free, and could not be taken 11 times`,
  );
  expect(takes).toBe(12);
  // A transaction that checks the claim has time to end.
  expect(waits).toHaveLength(10);
  expect(Math.min(...waits)).toBeGreaterThan(0);
});

test("an expired claim with a generation is taken with it, by a handler that has none", async () => {
  const left = { ...takenClaim("o0", 0), leaseUntilMs: 0, generation: "g0" };
  const taken: unknown[] = [];
  const claims = createClaims({
    // Safe: taking asks for nothing else.
    store: {
      take: async (_key: unknown, { generation }: { generation?: string }) => {
        taken.push(generation);
        return taken.length === 1 ? left : undefined;
      },
    } as never,
    clock: { now: () => 1_700_000_000_000 },
    schedule: timersOf(new World(), { isAlive: true, name: "p" }, async () => "fine"),
  });
  const { kind } = await claims.take(key, { waitMs: 0, stop: [] });

  expect([kind, taken]).toEqual(["taken", [undefined, "g0"]]);
});

test.each([
  ["one call", 1, leaseMs - 1_000],
  ["two calls", 2, leaseMs],
])("the lease starts again if the store has answered late, after %s", async (_, late, lateMs) => {
  const { world, take, record, calls } = start((call, nth) => {
    if (call === "take" && nth <= late) world.nowMs += lateMs / late;
    return call === "take" && nth < late ? "answer lost" : "fine";
  });
  const startMs = world.nowMs;
  await take();
  expect(world.nowMs).toBe(startMs + lateMs);
  expect(record()).toMatchObject({ owner: "o1", leaseUntilMs: world.nowMs + leaseMs });
  expect(calls.at(-1)).toBe("renew");
});

test("a run whose store has answered late does not hold a claim that another one has taken over", async () => {
  let isLate = true;
  const { world, claims } = start((call) => {
    if (call === "take" && isLate) world.nowMs += leaseMs + skewMs + 1;
    return "fine";
  });
  const late = claims.take(key, { waitMs: 0, stop: [] });
  isLate = false;
  expect(await claims.take(key, { waitMs: 0, stop: [] })).toMatchObject({ kind: "taken" });
  expect(await late).toMatchObject({ kind: "running", record: { owner: "o2" } });
});
