import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Shelf, shelfServer, startShelf } from "../../../test/fixtures/shelf.ts";
import { oldestUncounted } from "../projections/projection-versions.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { UncountedEvent } from "./rebuild.ts";

let shelf: Shelf;
beforeAll(async () => {
  shelf = await startShelf();
});
afterAll(() => shelf.close());

let world = "";
beforeEach(() => {
  world = shelf.newWorld();
});

describe("a projection", () => {
  test("counts each event once, however often it is delivered", async () => {
    const { runtime, lines } = shelf.start(shelfServer(world, 1));
    await shelf.change(runtime, "acme", 5);
    await shelf.change(runtime, "acme", 2, "removed");
    await shelf.change(runtime, "evil", 100);
    for (const event of await shelf.eventsOf(runtime, "acme")) {
      expect(await shelf.consume(runtime, event)).toMatchObject({ kind: "processed" });
      expect(await shelf.consume(runtime, event)).toMatchObject({ kind: "skipped" });
    }
    shelf.app.clock.advance(26 * 3_600_000);
    for (const event of await shelf.eventsOf(runtime, "acme"))
      expect(await shelf.consume(runtime, event)).toMatchObject({ kind: "processed" });
    expect(await shelf.total(runtime, "acme")).toEqual({
      key: `acme/page.usage-${world}@1/to~1tal`,
      total: 3,
      events: 2,
    });
    expect(await shelf.total(runtime, "evil")).toMatchObject({ events: 0 });
    expect(lines.filter(({ msg }) => msg === "projection.counted_before")).toHaveLength(2);
  });

  test("also writes the active version while another is declared, each with its own key", async () => {
    const [one, two] = [shelf.start(shelfServer(world, 1)), shelf.start(shelfServer(world, 2))];
    await shelf.change(one.runtime, "acme", 1);
    const [first] = await shelf.eventsOf(one.runtime, "acme");
    if (first !== undefined) await shelf.consume(one.runtime, first);
    await shelf.change(two.runtime, "acme", 10);
    const [, second] = await shelf.eventsOf(two.runtime, "acme");
    if (second !== undefined) await shelf.consume(two.runtime, second);
    expect(await shelf.total(two.runtime, "acme")).toEqual({
      key: `acme/page.usage-${world}@1/to~1tal`,
      total: 11,
      events: 2,
    });
    // It counts once in each, also where one has it already.
    shelf.app.clock.advance(26 * 3_600_000);
    if (first !== undefined) await shelf.consume(two.runtime, first);
    expect(await shelf.total(two.runtime, "acme")).toMatchObject({ total: 11, events: 2 });
    expect(await shelf.rebuildAt(two.runtime)).toEqual({ replayed: 2, hasSwitched: true });
    shelf.app.clock.advance(5_000);
    expect(await shelf.total(two.runtime, "acme")).toEqual({
      key: `acme/page.usage-${world}@2/to~1tal`,
      total: 11,
      events: 2,
    });
  });

  test("counts an event in the declared version although its process died after the active one", async () => {
    const withRows = { hasRowEach: true };
    const one = shelf.start(shelfServer(world, 1, withRows));
    await shelf.change(one.runtime, "acme", 1);
    for (const event of await shelf.eventsOf(one.runtime, "acme"))
      await shelf.consume(one.runtime, event);
    await shelf.change(one.runtime, "acme", 10);
    const last = (await shelf.eventsOf(one.runtime, "acme")).at(-1);
    if (last === undefined) throw new Error("no event");
    const dying = shelf.start(shelfServer(world, 2, withRows));
    dying.seen.between = async () => {
      if ((await shelf.total(one.runtime, "acme")).events === 2) throw new Error("dead");
    };
    expect(await shelf.consume(dying.runtime, last)).toMatchObject({ kind: "failed" });
    shelf.app.clock.advance(26 * 3_600_000); // the claim of the dead process has expired
    const two = shelf.start(shelfServer(world, 2, withRows));
    expect(await shelf.consume(two.runtime, last)).toMatchObject({ kind: "processed" });
    expect(await shelf.rebuildAt(two.runtime)).toEqual({ replayed: 2, hasSwitched: true });
    shelf.app.clock.advance(5_000);
    expect(await shelf.total(two.runtime, "acme")).toEqual({
      key: `acme/page.usage-${world}@2/to~1tal`,
      total: 11,
      events: 2,
    });
  });

  test("fails its event and counts nothing when it throws, returns no list or a condition fails", async () => {
    const { runtime } = shelf.start(shelfServer(world, 1));
    for (const n of [666, 667, 668, 669]) await shelf.change(runtime, "acme", n);
    const messages: unknown[] = [];
    for (const event of await shelf.eventsOf(runtime, "acme")) {
      const consumed = await shelf.consume(runtime, event);
      messages.push(consumed.kind === "failed" ? String(consumed.error) : consumed.kind);
    }
    expect(messages).toEqual([
      "Error: the projection does not like it",
      `TypeError: the projection page.usage-${world} gave "no list"; let it return a list of items`,
      expect.stringMatching("condition_failed"),
      "TypeError: ctx.commit: item 0 is not one of Put, Update, Delete and ConditionCheck",
    ]);
    expect(await shelf.total(runtime, "acme")).toMatchObject({ events: 0 });
  });
});

describe("rebuilding", () => {
  test("counts past events of all tenants and of none, then switches the version", async () => {
    const [one, two] = [
      shelf.start(shelfServer(world, 1, { onlyAdded: true })),
      shelf.start(shelfServer(world, 2)),
    ];
    for (const [tenant, n, type] of [
      ["a", 1, "added"],
      ["b", 2, "added"],
      ["a", 3, "removed"],
      ["b", 4, "added"],
    ] as const) {
      await shelf.change(one.runtime, tenant, n, type);
    }
    await shelf.change(one.runtime, undefined, 9);
    for (const tenant of ["a", "b"])
      for (const event of await shelf.eventsOf(one.runtime, tenant))
        await shelf.consume(one.runtime, event);
    expect(await shelf.total(two.runtime, "a")).toEqual({
      key: `a/page.usage-${world}@1/to~1tal`,
      total: 1,
      events: 1,
    });
    expect(await shelf.rebuildAt(two.runtime)).toEqual({ replayed: 5, hasSwitched: true });
    shelf.app.clock.advance(5_000);
    expect(await shelf.total(two.runtime, "a")).toEqual({
      key: `a/page.usage-${world}@2/to~1tal`,
      total: -2,
      events: 2,
    });
    expect(await shelf.total(two.runtime, "b")).toMatchObject({ total: 6, events: 2 });
    // Again, it finds all counted.
    expect(await shelf.rebuildAt(two.runtime)).toEqual({ replayed: 5, hasSwitched: false });
    expect(await shelf.total(two.runtime, "a")).toMatchObject({ total: -2, events: 2 });
  });

  test("one tenant switches that tenant, until all are switched", async () => {
    const [one, two, three] = [1, 2, 3].map(
      (version) => shelf.start(shelfServer(world, version)).runtime,
    ) as [Runtime, Runtime, Runtime];
    for (const tenant of ["a", "b"]) await shelf.change(one, tenant, 1);
    for (const tenant of ["a", "b"])
      for (const event of await shelf.eventsOf(one, tenant)) await shelf.consume(one, event);
    const keyOf = async (runtime: Runtime, tenant: string) => {
      shelf.app.clock.advance(5_000);
      return (await shelf.total(runtime, tenant)).key.replace(/.*@(\d).*/, "$1");
    };
    expect(await shelf.rebuildAt(two, { tenantId: "a" })).toEqual({
      replayed: 1,
      hasSwitched: true,
    });
    expect([await keyOf(two, "a"), await keyOf(two, "b")]).toEqual(["2", "1"]);
    expect(await shelf.rebuildAt(three)).toEqual({ replayed: 2, hasSwitched: true });
    expect([await keyOf(three, "a"), await keyOf(three, "b")]).toEqual(["3", "3"]);
  });

  test("one tenant of a projection never read before sets the version of all", async () => {
    const { runtime } = shelf.start(shelfServer(world, 1));
    await shelf.change(runtime, "a", 1);
    expect(await shelf.rebuildAt(runtime, { tenantId: "a" })).toEqual({
      replayed: 1,
      hasSwitched: true,
    });
    expect(await shelf.total(runtime, "a")).toMatchObject({ total: 1 });
  });

  test("is refused when the oldest events have expired, unless it is partial", async () => {
    const { runtime } = shelf.start(shelfServer(world, 1, { keepDays: 2 }));
    await shelf.change(runtime, "a", 1);
    shelf.app.clock.advance(86_400_000);
    await shelf.change(runtime, "a", 2);
    shelf.app.clock.advance(1.5 * 86_400_000);
    await expect(shelf.rebuildAt(runtime)).rejects.toThrow(
      `the projection page.usage-${world} cannot be rebuilt completely: the oldest events have expired (page.added-${world} of "a"); pass --partial`,
    );
    expect(await shelf.rebuildAt(runtime, { isPartial: true })).toMatchObject({ replayed: 1 });
    expect(await shelf.total(runtime, "a")).toMatchObject({ total: 2, events: 1 });
  });

  test("names at most three tenants whose events have expired", async () => {
    const { runtime } = shelf.start(shelfServer(world, 1, { keepDays: 1 }));
    for (const tenant of ["a", "b", "c", "d", "e"]) await shelf.change(runtime, tenant, 1);
    await shelf.change(runtime, undefined, 1);
    shelf.app.clock.advance(2 * 86_400_000);
    await expect(shelf.rebuildAt(runtime)).rejects.toThrow(
      /\(page.added-w\d+ of no tenant, \S+ of "a", \S+ of "b" and 3 more\); pass --partial/,
    );
  });

  test("stops at the signal before the next event, and the next call resumes there", async () => {
    const { runtime } = shelf.start(shelfServer(world, 1));
    for (const n of [1, 2, 3]) await shelf.change(runtime, "a", n);
    const { runtime: another, seen } = shelf.start(shelfServer(world, 2));
    const stop = new AbortController();
    seen.between = async () => {
      if ((await shelf.total(runtime, "a")).events >= 0 && seen.calls > 8)
        stop.abort(new Error("enough"));
    };
    await expect(shelf.rebuildAt(another, { signal: stop.signal })).rejects.toThrow("enough");
    await expect(
      shelf.rebuildAt(another, { signal: AbortSignal.abort(new Error("none")) }),
    ).rejects.toThrow("none");
    seen.between = async () => {};
    expect(await shelf.rebuildAt(another)).toMatchObject({ replayed: 3 });
    shelf.app.clock.advance(5_000);
    expect(await shelf.total(another, "a")).toMatchObject({ total: 6, events: 3 });
  });

  test("replays the events of all types in one order", async () => {
    const { runtime } = shelf.start(shelfServer(world, 1));
    for (const [n, type] of [
      [1, "removed"],
      [2, "added"],
      [3, "added"],
      [4, "removed"],
      [5, "added"],
    ] as const) {
      await shelf.change(runtime, "a", n, type);
      shelf.app.clock.advance(1);
      const { runtime: another } = shelf.start(shelfServer(world, n));
      await shelf.rebuildAt(another);
      expect(await shelf.latest(another, "a")).toBe(n);
    }
  });

  test("with 98 items per event still writes both versions once the new one is deployed", async () => {
    const rowsMore = 97;
    const one = shelf.start(shelfServer(world, 1, { rowsMore }));
    await shelf.change(one.runtime, "a", 1);
    const [first] = await shelf.eventsOf(one.runtime, "a");
    if (first !== undefined) await shelf.consume(one.runtime, first);
    const two = shelf.start(shelfServer(world, 2, { rowsMore }));
    await shelf.change(two.runtime, "a", 10);
    const last = (await shelf.eventsOf(two.runtime, "a")).at(-1);
    if (last === undefined) throw new Error("no event");
    expect(await shelf.consume(two.runtime, last)).toMatchObject({ kind: "processed" });
    expect(await shelf.total(one.runtime, "a")).toMatchObject({ total: 11, events: 2 });
    expect(await shelf.rebuildAt(two.runtime)).toEqual({ replayed: 2, hasSwitched: true });
    expect(await shelf.total(two.runtime, "a")).toMatchObject({ total: 11, events: 2 });
  });

  test("misses no event counted behind its position: live events go into both versions", async () => {
    const [one, two] = [shelf.start(shelfServer(world, 1)), shelf.start(shelfServer(world, 2))];
    await shelf.change(one.runtime, "a", 1);
    const { runtime } = shelf.start(shelfServer(world, 2));
    const [first] = await shelf.eventsOf(one.runtime, "a");
    if (first !== undefined) await shelf.consume(one.runtime, first);
    const store = await (await runtime.adapters.open()).projections.open();
    const { activate } = store;
    Object.assign(store, {
      activate: async (...given: Parameters<typeof activate>) => {
        await shelf.change(two.runtime, "a", 10);
        const last = (await shelf.eventsOf(two.runtime, "a")).at(-1);
        if (last !== undefined) await shelf.consume(two.runtime, last);
        return activate(...given);
      },
    });
    expect(await shelf.rebuildAt(runtime)).toEqual({ replayed: 1, hasSwitched: true });
    expect(await shelf.total(runtime, "a")).toEqual({
      key: `a/page.usage-${world}@2/to~1tal`,
      total: 11,
      events: 2,
    });
  });

  test("skips events counted before whose own condition would fail too", async () => {
    const withRows = { hasRowEach: true };
    const [one, two] = [
      shelf.start(shelfServer(world, 1, withRows)),
      shelf.start(shelfServer(world, 2, withRows)),
    ];
    await shelf.change(one.runtime, "a", 1);
    const [first] = await shelf.eventsOf(one.runtime, "a");
    if (first !== undefined) await shelf.consume(one.runtime, first);
    await shelf.change(two.runtime, "a", 10);
    const last = (await shelf.eventsOf(two.runtime, "a")).at(-1);
    if (last !== undefined) await shelf.consume(two.runtime, last);
    expect(await shelf.rebuildAt(two.runtime)).toEqual({ replayed: 2, hasSwitched: true });
    expect(await shelf.rebuildAt(two.runtime)).toEqual({ replayed: 2, hasSwitched: false });
    shelf.app.clock.advance(5_000);
    expect(await shelf.total(two.runtime, "a")).toEqual({
      key: `a/page.usage-${world}@2/to~1tal`,
      total: 11,
      events: 2,
    });
  });

  test("fails when another process has switched the version since its start", async () => {
    const [one, two] = [shelf.start(shelfServer(world, 1)), shelf.start(shelfServer(world, 2))];
    await shelf.change(one.runtime, "a", 1);
    await shelf.rebuildAt(one.runtime);
    const store = await (await two.runtime.adapters.open()).projections.open();
    const { activate } = store;
    const lose = (version: number) =>
      Object.assign(store, {
        activate: async (...[name, tenantId, _next, before]: Parameters<typeof activate>) => {
          await activate(name, tenantId, { version, revision: crypto.randomUUID() }, before);
          return false;
        },
      });
    lose(7);
    await expect(shelf.rebuildAt(two.runtime)).rejects.toThrow(
      `the projection page.usage-${world} was switched to version 7 in the meantime; rebuild it again`,
    );
    lose(2);
    expect(await shelf.rebuildAt(two.runtime)).toEqual({ replayed: 1, hasSwitched: false });
  });

  /** Rebuilds, and gives what it says of events that are not counted beside the result. */
  async function rebuildTelling(runtime: Runtime, options: Parameters<Shelf["rebuildAt"]>[1] = {}) {
    const told: UncountedEvent[] = [];
    const rebuilt = await shelf.rebuildAt(runtime, {
      ...options,
      tell: (event) => void told.push(event),
    });
    return { ...rebuilt, told };
  }
  const readBy = async (runtime: Runtime, tenant: string) => {
    shelf.app.clock.advance(5_000);
    const { key, total, events } = await shelf.total(runtime, tenant);
    return { version: Number(key.replace(/.*@(\d).*/, "$1")), total, events };
  };

  test("skips a tenant with a failing event and names it; that tenant keeps its version, and all others switch", async () => {
    const [one, two] = [shelf.start(shelfServer(world, 1)), shelf.start(shelfServer(world, 2))];
    for (const [tenant, n] of [
      ["a", 1],
      ["evil", 5],
      ["z", 2],
    ] as const) {
      await shelf.change(one.runtime, tenant, n);
      for (const event of await shelf.eventsOf(one.runtime, tenant))
        await shelf.consume(one.runtime, event);
    }
    // DynamoDB has no such number; the projection throws; its items are no items, have a condition that fails, or no table.
    for (const n of [1e300, 666, 667, 668, 669, 670]) await shelf.change(one.runtime, "evil", n);
    await shelf.change(one.runtime, "evil", 7);

    const { told, ...rebuilt } = await rebuildTelling(two.runtime);
    expect(rebuilt).toEqual({ replayed: 4, hasSwitched: true, lost: ["evil"] });
    const events = await shelf.eventsOf(one.runtime, "evil");
    expect(told.map(({ tenantId, eventId }) => [tenantId, eventId])).toEqual(
      events.slice(1, 7).map(({ eventId }) => ["evil", eventId]),
    );
    expect(told.map(({ type }) => type)).toEqual(
      Array.from({ length: 6 }, () => `page.added-${world}`),
    );
    expect([told[1]?.reason, told[5]?.reason]).toEqual([
      "the projection does not like it",
      "no error",
    ]);
    expect(await readBy(two.runtime, "a")).toEqual({ version: 2, total: 1, events: 1 });
    expect(await readBy(two.runtime, "z")).toEqual({ version: 2, total: 2, events: 1 });
    expect(await readBy(two.runtime, "evil")).toEqual({ version: 1, total: 5, events: 1 });

    // What comes later is counted in both; what cannot be counted is named again, until nothing of it is left.
    const last = events.at(-1);
    if (last !== undefined) await shelf.consume(two.runtime, last);
    expect(await readBy(two.runtime, "evil")).toEqual({ version: 1, total: 12, events: 2 });
    expect(await rebuildTelling(two.runtime)).toMatchObject({
      replayed: 4,
      hasSwitched: false,
      lost: ["evil"],
    });
    expect(await rebuildTelling(two.runtime, { tenantId: "evil" })).toMatchObject({
      hasSwitched: false,
      lost: ["evil"],
    });
    expect(await readBy(two.runtime, "evil")).toMatchObject({ version: 1 });
  });

  test("switches a skipped tenant once all its events are counted, alone or with all others", async () => {
    for (const tenantId of [undefined, "evil"]) {
      world = shelf.newWorld();
      const [one, two] = [
        shelf.start(shelfServer(world, 1)),
        shelf.start(shelfServer(world, 2, { isStrict: true })),
      ];
      for (const tenant of ["a", "evil"]) await shelf.change(one.runtime, tenant, 1);
      await shelf.change(one.runtime, "evil", 6);
      for (const tenant of ["a", "evil"])
        for (const event of await shelf.eventsOf(one.runtime, tenant))
          await shelf.consume(one.runtime, event);
      const { told, ...rebuilt } = await rebuildTelling(two.runtime);
      expect(rebuilt).toEqual({ replayed: 2, hasSwitched: true, lost: ["evil"] });
      expect(told[0]?.reason).toMatch(
        /the payload of page.added-w\d+ \S+ does not fit its schema any more \(n: /,
      );
      expect(await readBy(two.runtime, "evil")).toEqual({ version: 1, total: 7, events: 2 });
      const mended = shelf.start(shelfServer(world, 2));
      await rebuildTelling(mended.runtime, { tenantId });
      expect(await readBy(mended.runtime, "evil")).toEqual({ version: 2, total: 7, events: 2 });
      expect(await readBy(mended.runtime, "a")).toEqual({ version: 2, total: 1, events: 1 });
    }
  });

  test("keeps a tenant's own version when it skips the tenant", async () => {
    const [one, two, three] = [1, 2, 3].map(
      (version) => shelf.start(shelfServer(world, version)).runtime,
    ) as [Runtime, Runtime, Runtime];
    for (const tenant of ["a", "evil"]) {
      await shelf.change(one, tenant, 1);
      for (const event of await shelf.eventsOf(one, tenant)) await shelf.consume(one, event);
    }
    await shelf.rebuildAt(two, { tenantId: "evil" });
    await shelf.change(one, "evil", 666);
    expect(await shelf.rebuildAt(three)).toEqual({
      replayed: 2,
      hasSwitched: true,
      lost: ["evil"],
    });
    expect([await readBy(three, "a"), await readBy(three, "evil")]).toMatchObject([
      { version: 3 },
      { version: 2, total: 1 },
    ]);
  });

  test("switches no tenant when all have failing events, and all when no other version was read", async () => {
    const [one, two] = [shelf.start(shelfServer(world, 1)), shelf.start(shelfServer(world, 2))];
    for (const tenant of ["a", "b"]) {
      await shelf.change(one.runtime, tenant, 1);
      for (const event of await shelf.eventsOf(one.runtime, tenant))
        await shelf.consume(one.runtime, event);
      await shelf.change(one.runtime, tenant, 666);
    }
    expect(await shelf.rebuildAt(two.runtime)).toEqual({
      replayed: 2,
      hasSwitched: false,
      lost: ["a", "b"],
    });
    expect(await readBy(two.runtime, "a")).toEqual({ version: 1, total: 1, events: 1 });

    world = shelf.newWorld();
    const { runtime } = shelf.start(shelfServer(world, 3));
    for (const [tenant, n] of [
      ["a", 1],
      ["evil", 666],
      ["evil", 2],
    ] as const) {
      await shelf.change(runtime, tenant, n);
    }
    expect(await shelf.rebuildAt(runtime)).toEqual({
      replayed: 2,
      hasSwitched: true,
      lost: ["evil"],
    });
    expect(await readBy(runtime, "evil")).toEqual({ version: 3, total: 2, events: 1 });
  });

  test("names unreadable events without a tenant, and switches anyway", async () => {
    const [one, two] = [
      shelf.start(shelfServer(world, 1)),
      shelf.start(shelfServer(world, 2, { isStrict: true })),
    ];
    await shelf.change(one.runtime, "a", 1);
    for (const event of await shelf.eventsOf(one.runtime, "a"))
      await shelf.consume(one.runtime, event);
    await shelf.change(one.runtime, undefined, 9);
    const { told, ...rebuilt } = await rebuildTelling(two.runtime);
    expect(rebuilt).toEqual({ replayed: 1, hasSwitched: true, lost: [""] });
    expect(told).toMatchObject([{ tenantId: undefined }]);
  });

  test("remembers skipped tenants when interrupted, and stops when the store fails rather than an event", async () => {
    const [one, two] = [shelf.start(shelfServer(world, 1)), shelf.start(shelfServer(world, 2))];
    for (const [tenant, n] of [
      ["b", 666],
      ["c", 2],
      ["d", 1],
    ] as const) {
      await shelf.change(one.runtime, tenant, n);
      if (n < 666)
        for (const event of await shelf.eventsOf(one.runtime, tenant))
          await shelf.consume(one.runtime, event);
    }
    const stopping = new AbortController();
    const tell = () => stopping.abort(new Error("enough"));
    await expect(shelf.rebuildAt(two.runtime, { signal: stopping.signal, tell })).rejects.toThrow(
      "enough",
    );
    expect(await rebuildTelling(two.runtime)).toEqual({
      replayed: 2,
      hasSwitched: true,
      lost: ["b"],
      told: [],
    });

    const three = shelf.start(shelfServer(world, 3));
    const store = await (await three.runtime.adapters.open()).projections.open();
    const { saveRebuild } = store;
    let saves = 0;
    Object.assign(store, {
      saveRebuild: async (...given: Parameters<typeof saveRebuild>) => {
        saves += 1;
        if (given[2].lost !== undefined) throw new Error("no store");
        return saveRebuild(...given);
      },
    });
    await expect(shelf.rebuildAt(three.runtime)).rejects.toThrow("the projection does not like it");
    expect(saves).toBeGreaterThan(1);
    Object.assign(store, { saveRebuild });
    expect(await rebuildTelling(three.runtime)).toMatchObject({
      lost: ["b"],
      told: [{ tenantId: "b" }],
    });
  });

  test("gives up when too many tenants are skipped for their events to be the cause", async () => {
    const { runtime } = shelf.start(shelfServer(world, 1));
    await shelf.change(runtime, "x", 666);
    await shelf.change(runtime, "y", 667);
    const store = await (await runtime.adapters.open()).projections.open();
    const lost = Array.from({ length: 1_000 }, (_, n) => `t${n}`);
    await store.saveRebuild(`page.usage-${world}`, undefined, {
      ...{ version: 1, startedMs: shelf.app.clock.now(), tenant: "t999", after: "", replayed: 0 },
      lost,
    });
    // Tenants are rebuilt side by side, so either of the two reasons is the first.
    await expect(shelf.rebuildAt(runtime)).rejects.toThrow(
      new RegExp(
        `events of more than 1000 tenants cannot be counted by page.usage-${world}, so that it has not switched: the projection (does not like it|page.usage-${world} gave "no list")`,
      ),
    );
  });

  test("fails when another process switches while tenants are skipped or follow", async () => {
    const [one, two] = [shelf.start(shelfServer(world, 1)), shelf.start(shelfServer(world, 2))];
    for (const [tenant, n] of [
      ["a", 1],
      ["evil", 3],
    ] as const) {
      await shelf.change(one.runtime, tenant, n);
      for (const event of await shelf.eventsOf(one.runtime, tenant))
        await shelf.consume(one.runtime, event);
    }
    await shelf.change(one.runtime, "evil", 666);
    const store = await (await two.runtime.adapters.open()).projections.open();
    const { activate } = store;
    const losing = (...[name, tenantId, ...more]: Parameters<typeof activate>) =>
      tenantId === undefined ? activate(name, tenantId, ...more) : Promise.resolve(false);
    Object.assign(store, { activate: losing });
    await expect(shelf.rebuildAt(two.runtime)).rejects.toThrow(
      "was switched to another version in the meantime; rebuild it again",
    );
    Object.assign(store, { activate });
    expect(await shelf.rebuildAt(two.runtime)).toMatchObject({ hasSwitched: true, lost: ["evil"] });
    const mended = shelf.start(shelfServer(world, 2, { isMild: true }));
    const other = await (await mended.runtime.adapters.open()).projections.open();
    Object.assign(other, { activate: async () => false });
    await expect(shelf.rebuildAt(mended.runtime)).rejects.toThrow(
      "was switched to another version in the meantime; rebuild it again",
    );
  });

  test("one tenant is refused when none of its events is kept, as its ID may be mistyped", async () => {
    const { runtime } = shelf.start(shelfServer(world, 1));
    await shelf.change(runtime, "acme", 1);
    await expect(shelf.rebuildAt(runtime, { tenantId: "acne" })).rejects.toThrow(
      `no event of page.usage-${world} is kept for the tenant "acne"; look whether that is its ID`,
    );
  });

  test("saves its position every hundred events", async () => {
    const { runtime } = shelf.start(shelfServer(world, 1));
    await shelf.change(runtime, "a", 1);
    await shelf.copyEvents(runtime, "a", 99);
    const store = await (await runtime.adapters.open()).projections.open();
    const { saveRebuild } = store;
    const noted: number[] = [];
    Object.assign(store, {
      saveRebuild: (...given: Parameters<typeof saveRebuild>) => {
        noted.push(given[2].replayed);
        return saveRebuild(...given);
      },
    });
    expect(await shelf.rebuildAt(runtime)).toMatchObject({ replayed: 100 });
    expect(noted).toEqual([0, 100, 100]);
  });
});

describe("the oldest uncounted event", () => {
  const oldest = async (runtime: Runtime) => {
    const [projection] = runtime.server.registry.projections.values();
    if (projection === undefined) throw new Error("there is one");
    return oldestUncounted(await runtime.adapters.open(), projection, shelf.app.clock.now());
  };

  test("may be of any tenant, type and age, in the version that is read", async () => {
    const [one, two] = [
      shelf.start(shelfServer(world, 1)).runtime,
      shelf.start(shelfServer(world, 2)).runtime,
    ];
    expect(await oldest(one)).toBeUndefined();
    const times: number[] = [];
    for (const [tenant, type] of [
      ["a", "added"],
      ["b", "removed"],
      ["a", "added"],
    ] as const) {
      times.push(shelf.app.clock.now());
      await shelf.change(one, tenant, 1, type);
      shelf.app.clock.advance(4 * 3_600_000);
    }
    const [first = 0, second = 0, third = 0] = times;
    expect(await oldest(one)).toBeGreaterThanOrEqual(first);
    expect(await oldest(one)).toBeLessThan(second);
    const [event, last] = await shelf.eventsOf(one, "a");
    if (event !== undefined) await shelf.consume(one, event);
    expect(await oldest(one)).toBeGreaterThanOrEqual(second);
    expect(await oldest(one)).toBeLessThan(third);
    for (const each of await shelf.eventsOf(one, "b")) await shelf.consume(one, each);
    if (last !== undefined) await shelf.consume(one, last);
    expect(await oldest(one)).toBeUndefined();
    // Of a process that declares another one it is still the version that is read.
    expect(await oldest(two)).toBeUndefined();
  });

  test("excludes an event behind ten counted ones, which is a dead letter", async () => {
    const { runtime } = shelf.start(shelfServer(world, 1));
    await shelf.change(runtime, "a", 666);
    for (let n = 0; n < 10; n += 1) {
      await shelf.change(runtime, "a", 1);
      shelf.app.clock.advance(1);
    }
    const [, ...behind] = await shelf.eventsOf(runtime, "a");
    for (const event of behind.slice(1)) await shelf.consume(runtime, event);
    expect(await oldest(runtime)).toEqual(expect.any(Number));
    for (const event of behind) await shelf.consume(runtime, event);
    expect(await oldest(runtime)).toBeUndefined();
  });
});

describe("the version that is read", () => {
  test("is the declared one before any event is counted, and is looked up once in five seconds", async () => {
    const { runtime, seen } = shelf.start(shelfServer(world, 3));
    expect((await shelf.total(runtime, "a")).key).toContain("@3/");
    const before = seen.calls;
    await shelf.total(runtime, "a");
    expect(seen.calls - before).toBe(1); // the row itself
    shelf.app.clock.advance(5_000);
    await shelf.total(runtime, "a");
    expect(seen.calls - before).toBe(4);
  });

  test("is looked up again after a failure", async () => {
    const { runtime, seen } = shelf.start(shelfServer(world, 3));
    await runtime.adapters.open();
    let fails = true;
    seen.between = async () => {
      if (fails) throw new Error("the table is gone");
    };
    await expect(shelf.total(runtime, "a")).rejects.toThrow("the table is gone");
    fails = false;
    expect((await shelf.total(runtime, "a")).key).toContain("@3/");
  });

  test("is set by the first process that counts an event, despite concurrent ones", async () => {
    const [one, two] = [shelf.start(shelfServer(world, 1)), shelf.start(shelfServer(world, 2))];
    await shelf.change(one.runtime, "a", 1);
    await shelf.change(one.runtime, "a", 2);
    const [first, second] = await shelf.eventsOf(one.runtime, "a");
    if (first === undefined || second === undefined) throw new Error("no events");
    // Another process of the same server sets it between the look and the write of the first; one of another server as well.
    let isDone = false;
    two.seen.between = async () => {
      if (isDone) return;
      isDone = true;
      await shelf.consume(one.runtime, first);
    };
    expect(await (await two.runtime.projections.open()).version(`page.usage-${world}`, "a")).toBe(
      2,
    );
    await shelf.consume(two.runtime, second);
    shelf.app.clock.advance(5_000);
    expect(await shelf.total(two.runtime, "a")).toMatchObject({
      key: `a/page.usage-${world}@1/to~1tal`,
      total: 3,
      events: 2,
    });
  });

  test("is cached for a bounded number of tenants", async () => {
    const { runtime, seen } = shelf.start(shelfServer(world, 1));
    const projections = await runtime.projections.open();
    await projections.version(`page.usage-${world}`, "first");
    const store = await (await runtime.adapters.open()).projections.open();
    Object.assign(store, { active: async () => ({}) }); // ten thousand calls are not the point
    for (let n = 0; n < 10_000; n += 1) await projections.version(`page.usage-${world}`, `t${n}`);
    const before = seen.calls;
    await projections.version(`page.usage-${world}`, "t9999");
    expect(seen.calls).toBe(before);
  });

  test("is refused for an undeclared projection", async () => {
    const { runtime } = shelf.start(shelfServer(world, 1));
    await expect((await runtime.projections.open()).version("page.other", "a")).rejects.toThrow(
      "the projection page.other is declared by no feature of this server",
    );
  });
});
