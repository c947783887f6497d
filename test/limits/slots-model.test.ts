// A model of slots: processes that crash and stall, clocks that differ, numbers that change.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { SlotHolder, SlotRow, SlotStore } from "../../src/parts/limits/slot.ts";
import { createSlots } from "../../src/parts/limits/slots.ts";
import { claimKey, keyText } from "../../src/parts/once/claim.ts";
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
  /** Whether a process's timers stand still as well when the time jumps. */
  stalls: fc.array(fc.boolean(), { maxLength: 40 }),
});

/** Slots in memory, for one process. */
function slotStoreOf(
  shared: { row: SlotRow | undefined },
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
    add: (_place, { holder, row, ended }) =>
      call("slots add", () => {
        if (shared.row?.version !== row?.version) return false;
        const left = (shared.row?.holders ?? []).filter(({ owner }) => !ended.includes(owner));
        shared.row = { version: (row?.version ?? 0) + 1, holders: [...left, holder] };
        return true;
      }),
    remove: (_place, owner) =>
      call("slots remove", () => {
        const { row } = shared;
        if (row === undefined) return;
        const left = row.holders.filter((holder: SlotHolder) => holder.owner !== owner);
        shared.row = { ...row, holders: left };
      }),
  };
}

test("no interleaving has more runs that could commit than slots, and every job gets one in the end", async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), scenario, async (scheduler, given) => {
      const world = new World();
      const shared: { row: SlotRow | undefined } = { row: undefined };
      const left = {
        fates: [...given.fates],
        jumps: [...given.jumps],
        stalls: [...given.stalls],
        numbers: [...given.numbers],
      };
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
        if (jump > 10_000 && left.stalls.shift() !== true)
          for (const { timers } of processes) timers.tick();
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
          await turn("work");
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
