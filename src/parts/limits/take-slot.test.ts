import { expect, test } from "vitest";
import type { ClaimRecord } from "../once/claim.ts";
import type { SlotHolder } from "./slot.ts";
import { createSlots } from "./slots.ts";
import { type SlotParts, takeSlot } from "./take-slot.ts";

const place = { handler: "files.file.scan", limit: "perTenant", tenantId: "acme" } as const;
const nowMs = 1_700_000_000_000;
const holderOf = (owner: string): SlotHolder => ({
  owner,
  key: { partition: "p", sort: `dedup:${owner}` },
  sinceMs: nowMs,
});
const live = (owner: string, more: Partial<ClaimRecord> = {}): ClaimRecord =>
  ({
    status: "INPROGRESS",
    owner,
    leaseUntilMs: nowMs + 1_000,
    expiresAt: 1,
    ...more,
  }) as ClaimRecord; // safe: the members of a record in progress
const expired = { leaseUntilMs: nowMs - 60_000 };

interface Given {
  readonly row?: readonly SlotHolder[] | undefined;
  readonly records?: Readonly<Record<string, ClaimRecord>>;
  readonly parts?: Partial<SlotParts>;
  /** Outcomes of adding, in turn. Default: each succeeds. */
  readonly adds?: readonly boolean[];
}

function start({ row, records = {}, parts = {}, adds = [] }: Given) {
  const calls: unknown[][] = [];
  const outcomes = [...adds];
  const made: SlotParts = {
    clock: { now: () => nowMs },
    newOwner: () => "fence",
    store: {
      read: async () => row,
      add: async (_place, { holder, most, hasRow }) => {
        calls.push(["add", holder.owner, most, hasRow]);
        return outcomes.shift() ?? true;
      },
      remove: async (_place, owners) => void calls.push(["remove", ...owners]),
      list: async () => [],
    },
    claims: {
      read: async ({ sort }) => {
        calls.push(["read", sort]);
        return records[sort.slice("dedup:".length)];
      },
      take: async (_key, claim) => {
        calls.push(["take", claim.owner, claim.generation]);
        return undefined;
      },
      release: async (_key, owner) => void calls.push(["release", owner]),
      vacate: async (_key, owner) => void calls.push(["vacate", owner]),
    },
    ...parts,
  };
  return {
    parts: made,
    calls,
    take: (most: number) => takeSlot(made, place, most, holderOf("me")),
  };
}
const rowOf = (...owners: readonly string[]) => owners.map(holderOf);

test("takes a free slot without reading a claim", async () => {
  const { take, calls } = start({ row: rowOf("a") });
  expect(await take(2)).toBe(true);
  expect(calls).toEqual([["add", "me", 2, true]]);
});

test("takes the first slot of a place", async () => {
  const { take, calls } = start({});
  expect(await take(1)).toBe(true);
  expect(calls).toEqual([["add", "me", 1, false]]);
});

test("finds itself, if the response of an earlier call was lost", async () => {
  const { take, calls } = start({ row: rowOf("a", "me") });
  expect(await take(2)).toBe(true);
  expect(calls).toEqual([]);
});

test("replaces holders whose claims have ended, and no others", async () => {
  const completed: ClaimRecord = { status: "COMPLETED", owner: "b", expiresAt: 1 };
  const { take, calls } = start({
    row: rowOf("a", "b", "c", "d"),
    records: { a: live("a"), b: completed, d: live("other") },
  });
  expect(await take(4)).toBe(true);
  expect(calls.slice(-2)).toEqual([
    ["remove", "b", "c", "d"],
    ["add", "me", 4, true],
  ]);
});

test("takes an expired claim away from its run before it takes its slot", async () => {
  const { take, calls } = start({ row: rowOf("a"), records: { a: live("a", expired) } });
  expect(await take(1)).toBe(true);
  expect(calls.slice(1)).toEqual([
    ["take", "fence", undefined],
    ["release", "fence"],
    ["remove", "a"],
    ["add", "me", 1, true],
  ]);
});

test("takes an expired claim away under an ID of its own", async () => {
  const { parts, calls } = start({ row: rowOf("a"), records: { a: live("a", expired) } });
  const { newOwner: _unused, ...rest } = parts;
  expect(await takeSlot(rest, place, 1, holderOf("me"))).toBe(true);
  expect(calls[1]).toEqual(["take", expect.stringMatching(/^[\da-f-]{36}$/), undefined]);
});

test("the claim of a run that it takes away still names its tenant, so that an erasure finds it", async () => {
  const { parts } = start({
    row: rowOf("a"),
    records: { a: live("a", { ...expired, tenantId: "acme" }) },
  });
  const taken: unknown[] = [];
  const take: SlotParts["claims"]["take"] = async (key) => void taken.push(key);
  const claims = { ...parts.claims, take };
  await takeSlot({ ...parts, claims }, place, 1, holderOf("me"));
  expect(taken).toEqual([{ partition: "p", sort: "dedup:a", tenantId: "acme" }]);
});

test("leaves the generation of an expired claim to the next run", async () => {
  const claim = live("a", { ...expired, generation: "g" });
  const { take, calls } = start({ row: rowOf("a"), records: { a: claim } });
  expect(await take(1)).toBe(true);
  expect(calls.slice(1, 3)).toEqual([
    ["take", "fence", "g"],
    ["vacate", "fence"],
  ]);
});

test.each([
  ["its run has renewed it", live("a"), false],
  ["another run has taken it over", live("b"), true],
  ["its run has completed it", { status: "COMPLETED", owner: "a", expiresAt: 1 } as const, true],
  ["an earlier call has taken it, but its response was lost", live("fence"), true],
])("does not take an expired claim if %s", async (_, other, isTaken) => {
  const { parts, take } = start({ row: rowOf("a"), records: { a: live("a", expired) } });
  parts.claims.take = async () => other;
  parts.claims.release = () => Promise.reject(new Error("down"));
  expect(await take(1)).toBe(isTaken);
});

test("looks again if others have taken the last slot, and waits after five times", async () => {
  const again = start({ adds: [false, false] });
  expect(await again.take(1)).toBe(true);
  const { take, calls } = start({ adds: [false, false, false, false, false, false] });
  expect(await take(1)).toBe(false);
  expect(calls).toHaveLength(5);
});

test("no number below 1 admits a run, also to a place without a row", async () => {
  const { take, calls } = start({});
  expect(await take(0)).toBe(false);
  expect(calls).toEqual([]);
});

test("forty runs that have crashed leave their slots after the number was lowered", async () => {
  let row: readonly SlotHolder[] = Array.from({ length: 40 }, (_, n) => holderOf(`h${n}`));
  const { parts, take } = start({});
  parts.store.read = async () => row;
  parts.store.remove = async (_place, owners) => {
    row = row.filter(({ owner }) => !owners.includes(owner));
  };
  expect(await take(2)).toBe(false);
  expect(await take(2)).toBe(true);
});

test("checks at most 25 claims, each time others", async () => {
  const owners = Array.from({ length: 40 }, (_, index) => `h${index}`);
  const records = Object.fromEntries(owners.map((owner) => [owner, live(owner)]));
  const { parts, take, calls } = start({ row: rowOf(...owners), records });
  expect(await takeSlot({ ...parts, random: () => 0.75 }, place, 40, holderOf("me"))).toBe(false);
  expect(calls.map(([, sort]) => sort)).toEqual(
    [...owners, ...owners].slice(30, 55).map((owner) => `dedup:${owner}`),
  );
  calls.length = 0;
  await take(40);
  expect(calls).toHaveLength(25);
});

test("a lowered number admits nobody until enough runs have ended", async () => {
  const { take } = start({ row: rowOf("a", "b", "c"), records: { a: live("a"), b: live("b") } });
  expect(await take(2)).toBe(false);
  expect(await take(3)).toBe(true);
});

test("a process remembers for a second that all slots are held, or until one of its runs ends", async () => {
  let clock = nowMs;
  const { parts, calls } = start({ row: rowOf("a"), records: { a: live("a") } });
  const slots = createSlots({ ...parts, clock: { now: () => clock } });
  expect(slots.isFull(place)).toBe(false);
  expect(await slots.take(place, 1, holderOf("me"))).toBe(false);
  expect(slots.isFull(place)).toBe(true);
  expect(slots.isFull({ ...place, tenantId: "globex" })).toBe(false);
  clock += 1_001;
  expect(slots.isFull(place)).toBe(false);
  clock -= 60_000; // a clock that is set back
  expect(slots.isFull(place)).toBe(false);

  expect(await slots.take(place, 1, holderOf("me"))).toBe(false);
  await slots.leave(place, "a");
  expect(slots.isFull(place)).toBe(false);
  expect(calls.at(-1)).toEqual(["remove", "a"]);
  expect(await slots.take(place, 2, holderOf("me"))).toBe(true);
});

test("a slot that cannot be given back is free once the claim has ended", async () => {
  const { parts } = start({});
  parts.store.remove = () => Promise.reject(new Error("down"));
  await expect(createSlots(parts).leave(place, "a")).resolves.toBeUndefined();
});

test("lists only the slots of runs that hold their claims, and changes nothing", async () => {
  const completed: ClaimRecord = { status: "COMPLETED", owner: "b", expiresAt: 1 };
  const { parts, calls } = start({
    records: { a: live("a"), b: completed, d: live("other"), e: live("e", expired) },
  });
  parts.store.list = async () => [{ place, holders: rowOf("a", "b", "c", "d", "e") }];
  expect(await createSlots(parts).list(place.handler)).toEqual([{ place, holders: rowOf("a") }]);
  expect(calls.map(([name]) => name)).toEqual(Array(5).fill("read"));
});

test("a store that fails fails the run, and the place does not count as full", async () => {
  const { parts } = start({});
  parts.store.read = () => Promise.reject(new Error("down"));
  const slots = createSlots(parts);
  await expect(slots.take(place, 1, holderOf("me"))).rejects.toThrow("down");
  expect(slots.isFull(place)).toBe(false);
});

test("remembers a bounded number of places", async () => {
  const { parts } = start({ row: rowOf("a"), records: { a: live("a") } });
  const slots = createSlots(parts);
  for (let tenant = 0; tenant <= 1_000; tenant++)
    await slots.take({ ...place, tenantId: `t${tenant}` }, 1, holderOf("me"));
  expect(slots.isFull({ ...place, tenantId: "t0" })).toBe(false);
  expect(slots.isFull({ ...place, tenantId: "t1000" })).toBe(true);
});
