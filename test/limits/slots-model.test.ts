// A model of slots: processes that crash and stall, clocks that differ, numbers that change.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { SlotHolder, SlotStore } from "../../src/parts/limits/slot.ts";
import { createSlots } from "../../src/parts/limits/slots.ts";
import { claimKey, keyText, takenClaim } from "../../src/parts/once/claim.ts";
import { createClaims } from "../../src/parts/once/claims.ts";
import { type Fate, type Process, storeOf, timersOf, World } from "../once/world.ts";
import { runs } from "../support/runs.ts";

const place = { handler: "files.file.scan", limit: "perTenant", tenantId: "acme" } as const;
const fates: readonly Fate[] = [
  "fine",
  "fails",
  "answer lost",
  "process dies before",
  "process dies after",
];

const scenario = fc.record({
  number: fc.integer({ min: 1, max: 3 }),
  /** The numbers that later attempts find. */
  numbers: fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 6 }),
  /** Jobs by the process that receives them; a job may come to several. */
  received: fc.array(fc.record({ process: fc.nat(4), job: fc.nat(5) }), {
    minLength: 1,
    maxLength: 12,
  }),
  /** Difference of each process's clock, in milliseconds. */
  skews: fc.tuple(...[0, 1, 2, 3, 4].map(() => fc.integer({ min: -1_000, max: 1_000 }))),
  fates: fc.array(
    fc.oneof({ weight: 5, arbitrary: fc.constant<Fate>("fine") }, fc.constantFrom(...fates)),
    { maxLength: 40 },
  ),
  jumps: fc.array(
    fc.oneof({ weight: 6, arbitrary: fc.nat(2_000) }, fc.constantFrom(11_000, 33_000, 40_000)),
    { maxLength: 40 },
  ),
  /** Turns for which the processes' timers also stop when the time jumps. */
  stalls: fc.array(fc.constantFrom(0, 1, 2, 3, Number.POSITIVE_INFINITY), { maxLength: 40 }),
  /** Turns for which each run works. */
  works: fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 12 }),
});

interface Shared {
  row: readonly SlotHolder[] | undefined;
}

/** Slots in memory, for one process. */
function slotStoreOf(
  shared: Shared,
  process: Process,
  turn: (call: string) => Promise<Fate>,
): SlotStore {
  const call = async <Result>(name: string, work: () => Result): Promise<Result> => {
    const fate = await turn(name);
    if (fate === "process dies before") process.isAlive = false;
    if (!process.isAlive || fate === "fails") throw new Error("not reached");
    const result = work();
    if (fate === "process dies after") process.isAlive = false;
    if (!process.isAlive || fate === "answer lost") throw new Error("answer lost");
    return result;
  };
  return {
    list: async () => [],
    read: () => call("slots read", () => shared.row),
    add: (_place, { holder, most, hasRow }) =>
      call("slots add", () => {
        const { row } = shared;
        if (hasRow !== (row !== undefined) || (row ?? []).length >= most) return false;
        shared.row = [...(row ?? []), holder];
        return true;
      }),
    remove: (_place, owners) =>
      call("slots remove", () => {
        shared.row = shared.row?.filter(({ owner }) => !owners.includes(owner));
      }),
  };
}

test("no interleaving has more runs that could commit than slots, and every job gets one in the end", async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), scenario, async (scheduler, given) => {
      const world = new World();
      const shared: Shared = { row: undefined };
      const left = {
        fates: [...given.fates],
        jumps: [...given.jumps],
        stalls: [...given.stalls],
        numbers: [...given.numbers],
        works: [...given.works],
      };
      let stalledFor = Number.POSITIVE_INFINITY;
      const running = new Map<string, { readonly process: Process; readonly key: string }>();
      /** Runs that work, and whose commit the store would accept. */
      const working = () =>
        [...running].filter(([owner, { process, key }]) => {
          const record = world.records.get(key);
          return process.isAlive && record?.status === "INPROGRESS" && record.owner === owner;
        }).length;
      const turn = async (call: string): Promise<Fate> => {
        await scheduler.schedule(Promise.resolve(), call);
        const jump = left.jumps.shift() ?? 0;
        world.nowMs += jump;
        if (jump > 10_000) stalledFor = left.stalls.shift() ?? 0;
        if (stalledFor === 0) for (const { timers } of processes) timers.tick();
        stalledFor -= 1;
        return left.fates.shift() ?? "fine";
      };
      const processOf = (n: number, skewMs: number) => {
        const process: Process = { isAlive: true, name: `p${n}` };
        const store = storeOf(world, process, turn);
        const clock = { now: () => world.nowMs + skewMs };
        const timers = timersOf(world, process, turn);
        let owners = 0;
        const newOwner = () => `${process.name}-${++owners}`;
        const claims = createClaims({ store, clock, schedule: timers, newOwner });
        const slots = createSlots({
          store: slotStoreOf(shared, process, turn),
          claims: store,
          clock,
          newOwner: () => `fence-${newOwner()}`,
        });
        return { process, timers, claims, slots };
      };
      const processes = given.skews.map((skewMs, n) => processOf(n, skewMs));

      const work = async (
        { process, claims, slots }: (typeof processes)[number],
        job: number,
      ): Promise<string> => {
        const key = claimKey(["job"], `${job}`);
        const taken = await claims.take(key, { waitMs: 0, stop: [] });
        if (taken.kind === "done") return "done";
        if (taken.kind !== "taken") return taken.kind;
        const { claim } = taken;
        const { owner } = claim;
        const number = left.numbers.shift() ?? given.number;
        try {
          if (!(await slots.take(place, number, { owner, key }))) {
            await claim.release();
            return "waits";
          }
          running.set(owner, { process, key: keyText(key) });
          expect(working()).toBeLessThanOrEqual(number);
          const turns = left.works.shift() ?? 1;
          for (let n = 0; n < turns; n += 1) await turn("work");
          return (await claim.complete(undefined)) ? "worked" : "fenced";
        } catch (error) {
          claim.abandon();
          throw error;
        } finally {
          running.delete(owner);
          if (process.isAlive) await slots.leave(place, owner);
        }
      };

      const outcomes = Promise.allSettled(
        given.received.map(async ({ process, job }) =>
          seen.add(await work(processes[process] as (typeof processes)[number], job)),
        ),
      );
      await scheduler.waitFor(outcomes);
      for (const outcome of await outcomes)
        if (outcome.status === "rejected" && /expected/.test(String(outcome.reason)))
          throw outcome.reason;
      // The dead processes' leases expire. Then one process works on what is left.
      left.fates = [];
      left.jumps = [];
      world.nowMs += 60_000;
      const last = processOf(9, 0);
      for (const { job } of given.received)
        expect(["worked", "done"]).toContain(await scheduler.waitFor(work(last, job)));
    }),
    { numRuns: runs(2_000) },
  );
  // What the model has met.
  expect([...seen].toSorted()).toEqual(["done", "fenced", "running", "waits", "worked"]);
});

test("in every interleaving, runs that reach a place with enough free slots all get one", async () => {
  const given = fc.record({
    admitted: fc.integer({ min: 1, max: 12 }),
    processes: fc.integer({ min: 1, max: 5 }),
    /** Slots that stay free. */
    spare: fc.nat(2),
    /** Runs whose processes have crashed, and whose claims have expired. */
    crashed: fc.nat(12),
    hasRow: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), given, async (scheduler, { admitted, spare, ...rest }) => {
      const world = new World();
      const keyOf = (name: string) => claimKey(["job"], name);
      const crashed = Array.from({ length: rest.crashed }, (_, n) => `crashed-${n}`);
      const dead = crashed.map((owner) => ({ owner, key: keyOf(owner), sinceMs: 0 }));
      for (const { owner, key } of dead)
        world.records.set(keyText(key), takenClaim(owner, world.nowMs - 60_000));
      const shared: Shared = { row: rest.hasRow || dead.length > 0 ? dead : undefined };
      const turn = async (call: string): Promise<Fate> => {
        await scheduler.schedule(Promise.resolve(), call);
        return "fine";
      };
      const processes = Array.from({ length: rest.processes }, (_, n) => {
        const process: Process = { isAlive: true, name: `p${n}` };
        const store = slotStoreOf(shared, process, turn);
        const claims = storeOf(world, process, turn);
        return createSlots({ store, claims, clock: { now: () => world.nowMs } });
      });
      const most = admitted + spare;
      const takes = Promise.all(
        Array.from({ length: admitted }, (_, n) => {
          const owner = `run-${n}`;
          world.records.set(keyText(keyOf(owner)), takenClaim(owner, world.nowMs));
          return processes[n % processes.length]?.take(place, most, { owner, key: keyOf(owner) });
        }),
      );
      expect(await scheduler.waitFor(takes)).toEqual(Array.from({ length: admitted }, () => true));
      expect(processes.map(({ isFull }) => isFull(place))).not.toContain(true);
      expect(shared.row?.length).toBeLessThanOrEqual(most);
    }),
    { numRuns: runs(1_000) },
  );
});
