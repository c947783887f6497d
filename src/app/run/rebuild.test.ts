import { describe, expect, test } from "vitest";
import {
  type Counted,
  countedName,
  keptDays,
  startCounted,
} from "../../../test/fixtures/counted.ts";
import type { RebuildState } from "../projections/projection-store.ts";
import { type RebuildOptions, rebuild } from "./rebuild.ts";

const rebuildOf = (of: Counted, options: Partial<RebuildOptions> = {}) =>
  rebuild(of.runtime, { projection: of.projection, ...options });
const one = { version: 1, revision: "one" };
/** A position of a rebuild that has begun at the start of the world. */
const positionOf = ({ world }: Counted, more: Partial<RebuildState> = {}): RebuildState => ({
  ...{ version: 2, startedMs: world.nowMs, tenant: "", after: "", replayed: 0 },
  ...more,
});

describe("a rebuild", () => {
  test("counts the kept events of each tenant in their order, and then switches", async () => {
    const shelf = startCounted();
    shelf.active.set("all", one);
    shelf.keep("b", 4);
    shelf.keep("a", 3, { type: "counted.removed" });
    shelf.keep("a", 2);
    shelf.keep("a", 5);
    shelf.keep(undefined, 6);
    shelf.keep("a", 1, { type: "counted.other" });
    expect(await rebuildOf(shelf)).toEqual({ replayed: 5, hasSwitched: true });
    const of = (tenant: string) => shelf.counted.filter((mark) => mark.startsWith(`2 ${tenant} `));
    expect(of("a")).toEqual(["2 a e-2", "2 a e-3", "2 a e-5"]);
    expect([of("nobody"), of("b"), shelf.counted.length]).toEqual([
      ["2 nobody e-6"],
      ["2 b e-4"],
      5,
    ]);
    expect([...shelf.active]).toEqual([["all", expect.objectContaining({ version: 2 })]]);
    // Its position is saved at its start and when tenants end, and removed at its end.
    expect(shelf.saved[0]).toEqual(positionOf(shelf));
    expect(shelf.saved.at(-1)).toMatchObject({ tenant: "b", replayed: 5 });
    expect(shelf.positions.size).toBe(0);
  });

  test.each<[string, number | undefined, number]>([
    ["as long as its declaration says, at least", keptDays - 1, keptDays],
    ["as long as it is kept", 90, 90],
    ["forever, if it is kept forever", undefined, Number.POSITIVE_INFINITY],
  ])("marks an event for %s", async (_, leftDays, days) => {
    const shelf = startCounted();
    const nowSeconds = shelf.world.nowMs / 1_000;
    shelf.keep("a", 1, leftDays === undefined ? {} : { keptUntil: nowSeconds + leftDays * 86_400 });
    await rebuildOf(shelf);
    expect([...shelf.marks.keys()]).toEqual([{ days }]);
  });

  test("marks an event for whole days, at least as long as it is kept", async () => {
    const shelf = startCounted();
    shelf.keep("a", 1, { keptUntil: shelf.world.nowMs / 1_000 + 90 * 86_400 + 1 });
    await rebuildOf(shelf);
    expect([...shelf.marks.keys()]).toEqual([{ days: 91 }]);
  });

  test("counts no event again that was delivered before", async () => {
    const shelf = startCounted();
    shelf.active.set("all", one);
    for (const n of [1, 2]) shelf.keep("a", n);
    shelf.counted.push("2 a e-1");
    expect(await rebuildOf(shelf)).toEqual({ replayed: 2, hasSwitched: true });
    expect(shelf.counted).toEqual(["2 a e-1", "2 a e-2"]);
  });

  test("leaves events that are published later to their delivery", async () => {
    const shelf = startCounted();
    // Clocks of other processes may be a minute ahead.
    shelf.keep("a", 1, { sinceMs: 59_999 });
    shelf.keep("a", 2, { sinceMs: 60_000 });
    expect(await rebuildOf(shelf)).toMatchObject({ replayed: 1 });
    expect(shelf.counted).toEqual(["2 a e-1"]);
  });

  test("switches although no event is kept, but not to what is active already", async () => {
    const shelf = startCounted();
    expect(await rebuildOf(shelf)).toEqual({ replayed: 0, hasSwitched: true });
    const active = shelf.active.get("all");
    expect(await rebuildOf(shelf)).toEqual({ replayed: 0, hasSwitched: false });
    expect(shelf.active.get("all")).toEqual(active);
  });

  test("of one tenant counts and switches that tenant alone", async () => {
    const shelf = startCounted();
    shelf.active.set("all", one);
    for (const [tenant, n] of [["a", 1] as const, ["b", 2] as const]) shelf.keep(tenant, n);
    const options = { tenantId: "b" };
    expect(await rebuildOf(shelf, options)).toEqual({ replayed: 1, hasSwitched: true });
    expect(shelf.counted).toEqual(["2 b e-2"]);
    expect(shelf.active.get("b")).toMatchObject({ version: 2, over: "one" });
    expect([shelf.active.get("all"), shelf.active.size]).toEqual([one, 2]);
  });

  test("of one tenant is refused if no event of that tenant is kept", async () => {
    const shelf = startCounted();
    shelf.keep("acme", 1);
    await expect(rebuildOf(shelf, { tenantId: "acne" })).rejects.toThrow(
      `no event of ${countedName} is kept for the tenant "acne"; look whether that is its ID`,
    );
    expect([shelf.saved, shelf.active.size]).toEqual([[], 0]);
  });

  test("saves its position after every hundred events of a tenant", async () => {
    const shelf = startCounted();
    for (let n = 1; n <= 250; n += 1) shelf.keep("a", n);
    expect(await rebuildOf(shelf)).toMatchObject({ replayed: 250 });
    expect(shelf.saved.map(({ replayed }) => replayed)).toEqual([0, 100, 200, 250]);
  });
});

test("a rebuild saves its position once for tenants that end while it is being saved", async () => {
  const turns = async (count: number) => {
    for (let turn = 0; turn < count; turn += 1) await new Promise((done) => setImmediate(done));
  };
  const shelf = startCounted(async (_ctx, { payload: { n } }) => {
    await turns(n);
    return [];
  });
  for (let n = 0; n < 8; n += 1) shelf.keep(`t${n}`, n);
  const { saveRebuild } = shelf.store;
  const saveSlowly = async (...given: Parameters<typeof saveRebuild>) => {
    await turns(20);
    return saveRebuild(...given);
  };
  Object.assign(shelf.store, { saveRebuild: saveSlowly });

  expect(await rebuildOf(shelf)).toMatchObject({ replayed: 8 });
  expect(shelf.saved.map(({ replayed }) => replayed)).toEqual([0, 1, 8]);
});

test.each([8, 24])("a rebuild of %i tenants replays eight at the same time", async (count) => {
  let [running, most] = [0, 0];
  const shelf = startCounted(async () => {
    most = Math.max(most, ++running);
    for (let turn = 0; turn < 5; turn += 1) await new Promise((done) => setImmediate(done));
    running -= 1;
    return [];
  });
  for (let n = 0; n < count; n += 1) for (const at of [0, 1]) shelf.keep(`t${n}`, 2 * n + at);

  expect(await rebuildOf(shelf)).toMatchObject({ replayed: 2 * count });
  expect(most).toBe(8);
});

describe("a rebuild tells", () => {
  const toldBy = async (shelf: Counted, options: Partial<RebuildOptions> = {}) => {
    const told: unknown[] = [];
    await rebuildOf(shelf, {
      ...options,
      onPage: (scanned) => told.push(scanned),
      onProgress: ({ replayed, ended, tenants }) =>
        told.push(`${replayed} events, ${ended} of ${tenants}`),
    });
    return told;
  };

  test("how many rows it has searched, and which events and tenants are done", async () => {
    const shelf = startCounted();
    for (const n of [1, 2]) shelf.keep("a", n);
    expect(await toldBy(shelf)).toEqual([
      ...[2, "0 events, 0 of 1", "1 events, 0 of 1"],
      ...["2 events, 0 of 1", "2 events, 1 of 1"],
    ]);
  });

  test("the events of tenants that are replayed at the same time", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const shelf = startCounted(async (_ctx, { eventId }) => {
      if (eventId === "e-1") await promise;
      if (eventId === "e-3") resolve();
      return [];
    });
    for (const [tenant, n] of [["a", 1] as const, ["b", 2] as const, ["b", 3] as const])
      shelf.keep(tenant, n);
    const told = await toldBy(shelf);
    expect(told.slice(0, 3)).toEqual([3, "0 events, 0 of 2", "1 events, 0 of 2"]);
    expect(told.at(-1)).toBe("3 events, 2 of 2");
  });

  test("what earlier calls have done, and no event that cannot be counted", async () => {
    const shelf = startCounted();
    shelf.keep("a", 1);
    const after = shelf.keep("b", 2);
    shelf.keep("b", 3);
    shelf.keep("b", 1_001);
    shelf.positions.set("all", positionOf(shelf, { tenant: "b", after, replayed: 7 }));
    expect(await toldBy(shelf)).toEqual([
      ...[4, "7 events, 1 of 2", "8 events, 1 of 2", "8 events, 2 of 2"],
    ]);
  });
});

describe("a rebuild that resumes", () => {
  test("goes on behind the last event, with the tenants that follow", async () => {
    const shelf = startCounted();
    shelf.keep("a", 1);
    const after = shelf.keep("b", 2);
    for (const [tenant, n] of [["b", 3] as const, ["c", 0] as const]) shelf.keep(tenant, n);
    shelf.positions.set("all", positionOf(shelf, { tenant: "b", after, replayed: 7 }));
    expect(await rebuildOf(shelf)).toMatchObject({ replayed: 9 });
    expect(shelf.counted).toEqual(["2 b e-3", "2 c e-0"]);
  });

  test("counts up to its first start, even if events have expired meanwhile", async () => {
    const shelf = startCounted();
    shelf.keep("a", 1, { keptUntil: shelf.world.nowMs / 1_000 });
    shelf.keep("a", 2, { sinceMs: 60_000 });
    shelf.positions.set("all", positionOf(shelf));
    shelf.world.nowMs += 3_600_000;
    expect(await rebuildOf(shelf)).toMatchObject({ replayed: 0, hasSwitched: true });
    expect(shelf.saved[0]).toMatchObject({ startedMs: shelf.world.nowMs - 3_600_000 });
  });

  test("begins anew for another version or tenant", async () => {
    const shelf = startCounted();
    shelf.keep("a", 1);
    const done = { tenant: "z", replayed: 7 };
    shelf.positions.set("all", positionOf(shelf, { version: 1, ...done }));
    expect(await rebuildOf(shelf)).toMatchObject({ replayed: 1 });
    shelf.positions.set("all", positionOf(shelf, done));
    expect(await rebuildOf(shelf, { tenantId: "a" })).toMatchObject({ replayed: 1 });
  });
});

describe("a rebuild with a signal", () => {
  const enough = new Error("enough");

  test("does nothing if it has aborted before", async () => {
    const shelf = startCounted();
    shelf.keep("a", 1);
    const options = { signal: AbortSignal.abort(enough) };
    await expect(rebuildOf(shelf, options)).rejects.toBe(enough);
    expect([shelf.saved, shelf.counted]).toEqual([[], []]);
  });

  test("stops before the next event, and the next call goes on there", async () => {
    const stop = new AbortController();
    const calls: string[] = [];
    const shelf = startCounted((_ctx, { eventId }) => {
      calls.push(eventId);
      if (eventId === "e-2") stop.abort(enough);
      return [];
    });
    const [, after] = [1, 2, 3].map((n) => shelf.keep("a", n));
    await expect(rebuildOf(shelf, { signal: stop.signal })).rejects.toBe(enough);
    expect([shelf.counted, shelf.active.size]).toEqual([["2 a e-1", "2 a e-2"], 0]);
    const position = positionOf(shelf, { tenant: "a", replayed: 2 });
    expect(shelf.positions.get("all")).toEqual({ ...position, after });
    const { signal } = new AbortController();
    expect(await rebuildOf(shelf, { signal })).toEqual({ replayed: 3, hasSwitched: true });
    expect(calls).toEqual(["e-1", "e-2", "e-3"]);
  });

  test("does not switch if it aborts with the last event", async () => {
    const stop = new AbortController();
    const shelf = startCounted(() => {
      stop.abort(enough);
      return [];
    });
    shelf.keep("a", 1);
    await expect(rebuildOf(shelf, { signal: stop.signal })).rejects.toBe(enough);
    expect([shelf.active.size, shelf.positions.size]).toEqual([0, 1]);
  });

  test("saves nothing more when its store fails", async () => {
    const shelf = startCounted();
    shelf.keep("a", 1);
    const failing = new Error("no answer");
    const saves: RebuildState[] = [];
    Object.assign(shelf.store, {
      saveRebuild: async (_name: string, _tenant: unknown, state: RebuildState) => {
        saves.push(state);
        if (saves.length > 1) throw failing;
      },
    });
    const { signal } = new AbortController();
    await expect(rebuildOf(shelf, { signal })).rejects.toBe(failing);
    expect(saves.map(({ replayed }) => replayed)).toEqual([0, 1]);
  });
});

describe("a rebuild whose oldest events have expired", () => {
  const refusal = (shown: string) =>
    [
      `the projection ${countedName} cannot be rebuilt completely: the oldest events have expired`,
      `(${shown}); pass --partial to build it from the remaining events`,
    ].join(" ");

  /** Keeps an event of each tenant, which expire now or, where there is no tenant, a second ago. */
  function expired(...tenants: (string | undefined)[]): Counted {
    const shelf = startCounted();
    const nowSeconds = shelf.world.nowMs / 1_000;
    for (const [n, tenantId] of tenants.entries())
      shelf.keep(tenantId, n, { keptUntil: nowSeconds - (tenantId === undefined ? 1 : 0) });
    shelf.keep("later", 10, { keptUntil: nowSeconds + 1 });
    shelf.keep("unlimited", 11);
    return shelf;
  }

  test.each<[string, (string | undefined)[], string]>([
    ["its tenant", ["a"], 'counted.added of "a"'],
    [
      "three tenants in order",
      ["c", "a", undefined],
      'counted.added of no tenant, counted.added of "a", counted.added of "c"',
    ],
    [
      "three of five",
      ["e", "d", "c", "b", "a"],
      'counted.added of "a", counted.added of "b", counted.added of "c" and 2 more',
    ],
  ])("is refused, and names %s", async (_, tenants, shown) => {
    const shelf = expired(...tenants);
    await expect(rebuildOf(shelf)).rejects.toThrow(refusal(shown));
    await expect(rebuildOf(shelf, { isPartial: false })).rejects.toThrow(refusal(shown));
    expect([shelf.saved, shelf.counted]).toEqual([[], []]);
  });

  test("counts what is left if it is partial", async () => {
    const shelf = expired("a");
    expect(await rebuildOf(shelf, { isPartial: true })).toEqual({ replayed: 2, hasSwitched: true });
    expect(shelf.counted).toEqual(["2 later e-10", "2 unlimited e-11"]);
  });

  test("is not refused if its events will expire or never do", async () => {
    expect(await rebuildOf(expired())).toMatchObject({ replayed: 2 });
  });
});
