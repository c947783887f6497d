import { describe, expect, test } from "vitest";
import {
  type Counted,
  countedName,
  type KeptFacts,
  startCounted,
} from "../../../test/fixtures/counted.ts";
import { AccessDeniedError } from "../../base/errors/errors.ts";
import type { ProjectionContext } from "../handlers/message-handlers.ts";
import { effectiveVersion } from "../projections/projections.ts";
import { type Rebuilt, rebuild, type UncountedEvent } from "./rebuild.ts";

const one = { version: 1, revision: "one" };
const disliked = new Error("the projection does not like it");

/** A projection that fails for `n` from 600. */
const failing = (error: unknown = disliked) =>
  startCounted((_ctx, { payload: { n } }) => {
    if (n >= 600) throw error;
    return [];
  });

/** Rebuilds, and returns the events that it told of beside its result. */
async function rebuildTelling(of: Counted): Promise<Rebuilt & { told: UncountedEvent[] }> {
  const told: UncountedEvent[] = [];
  const { runtime, projection } = of;
  const tell = (event: UncountedEvent) => void told.push(event);
  return { ...(await rebuild(runtime, { projection, tell })), told };
}

const versionsOf = ({ active }: Counted) =>
  Object.fromEntries([...active].map(([tenant, { version }]) => [tenant, version]));
/** Saves a position past the last of the tenants, whose last replayed event is `after`. */
const saveLost = (of: Counted, lost: readonly string[], after: string) => {
  const tenant = lost.toSorted().at(-1) ?? "";
  const begun = { version: 2, startedMs: of.world.nowMs, tenant, after, replayed: 0 };
  of.positions.set("all", { ...begun, lost });
};

describe("a rebuild that cannot count an event", () => {
  test("tells of it, keeps the version of its tenant and switches all others", async () => {
    const shelf = failing();
    shelf.active.set("all", one);
    shelf.keep("a", 1);
    shelf.keep("evil", 2);
    for (const n of [601, 602]) shelf.keep("evil", n, { type: "counted.removed" });
    shelf.keep("evil", 700, { sinceMs: -1 });
    const { told, ...rebuilt } = await rebuildTelling(shelf);
    expect(rebuilt).toEqual({ replayed: 2, hasSwitched: true, lost: ["evil"] });
    const reason = disliked.message;
    const event = { tenantId: "evil", type: "counted.removed", reason };
    expect(told).toEqual([
      { ...event, eventId: "e-601" },
      { ...event, eventId: "e-602" },
      { ...event, eventId: "e-700", type: "counted.added" },
    ]);
    expect(shelf.counted).toEqual(["2 a e-1", "2 evil e-2"]);
    expect(versionsOf(shelf)).toEqual({ all: 2, evil: 1 });
  });

  test("needs nobody to tell", async () => {
    const shelf = failing();
    shelf.keep("a", 1);
    shelf.keep("evil", 601);
    expect(await rebuild(shelf.runtime, { projection: shelf.projection })).toEqual({
      ...{ replayed: 1, hasSwitched: true, lost: ["evil"] },
    });
  });

  test("saves its position with each, and counts it as a hundredth event too", async () => {
    const shelf = failing();
    shelf.keep("b", 700);
    for (let n = 501; n <= 600; n += 1) shelf.keep("a", n);
    await rebuildTelling(shelf);
    const saved = shelf.saved.map(({ tenant, replayed, lost }) => [tenant, replayed, lost]);
    // `b` is replayed at the same time, but the position is past its events only once `a` has
    // ended.
    expect(saved.length).toBe(5);
    expect(saved.filter(([tenant, replayed]) => tenant === "b" && replayed !== 99)).toEqual([]);
    expect([saved[0], saved.at(-1)]).toEqual([
      ["", 0, undefined],
      ["b", 99, ["b", "a"]],
    ]);
  });

  test("names an event without a tenant, and switches without a version for none", async () => {
    const shelf = failing();
    shelf.active.set("all", one);
    shelf.keep("a", 1);
    shelf.keep(undefined, 601);
    const { told, ...rebuilt } = await rebuildTelling(shelf);
    expect(rebuilt).toEqual({ replayed: 1, hasSwitched: true, lost: [""] });
    expect(told).toEqual([expect.objectContaining({ tenantId: undefined, eventId: "e-601" })]);
    expect(versionsOf(shelf)).toEqual({ all: 2 });
  });

  test("switches no tenant if it is so for each of them", async () => {
    const shelf = failing();
    shelf.active.set("all", one);
    for (const tenant of ["a", "b"]) shelf.keep(tenant, 601);
    const { told, ...rebuilt } = await rebuildTelling(shelf);
    expect(rebuilt).toEqual({ replayed: 0, hasSwitched: false, lost: ["a", "b"] });
    expect(versionsOf(shelf)).toEqual({ all: 1 });
    expect([told.length, shelf.positions.size]).toEqual([2, 0]);
  });

  test("has those tenants follow later whose events it has all counted", async () => {
    const shelf = failing();
    shelf.active.set("all", { version: 2, revision: "two" });
    for (const tenant of ["fixed", "evil"])
      shelf.active.set(tenant, { ...one, revision: tenant, over: "two" });
    shelf.keep("fixed", 1);
    shelf.keep("evil", 601);
    expect(await rebuildTelling(shelf)).toMatchObject({ replayed: 1, hasSwitched: false });
    expect(versionsOf(shelf)).toEqual({ all: 2, fixed: 2, evil: 1 });
  });

  test("keeps its tenant's own version, also if a call fails before the switch", async () => {
    const shelf = failing();
    shelf.active.set("all", one);
    shelf.active.set("evil", { version: 7, revision: "own", over: "one" });
    shelf.keep("a", 1);
    shelf.keep("evil", 601);
    const { active, activate } = shelf.store;
    const readVersion = async (tenant: string) =>
      effectiveVersion(await active(countedName, tenant))?.version;
    const stays = async (...given: Parameters<typeof activate>) => {
      if (given[1] === undefined) throw new Error("no answer");
      return activate(...given);
    };
    Object.assign(shelf.store, { activate: stays });
    for (const _call of ["first", "second"]) {
      await expect(rebuildTelling(shelf)).rejects.toThrow("no answer");
      expect([await readVersion("a"), await readVersion("evil")]).toEqual([1, 7]);
    }
    Object.assign(shelf.store, { activate });
    expect(await rebuildTelling(shelf)).toMatchObject({ hasSwitched: true, lost: ["evil"] });
    expect([await readVersion("a"), await readVersion("evil")]).toEqual([2, 7]);
  });

  test.each([
    [2, { hasSwitched: false, lost: ["evil"] }],
    [
      3,
      `the projection ${countedName} was switched to version 3 in the meantime; rebuild it again`,
    ],
  ])("keeps the versions if another process switches to version %i", async (version, expected) => {
    const all = { version, revision: "other" };
    const own = { version: 7, revision: "own", over: all.revision, overBefore: one.revision };
    const shelf = startCounted((_ctx, { payload: { n } }) => {
      shelf.active.set("all", all).set("evil", own);
      if (n >= 600) throw disliked;
      return [];
    });
    shelf.active.set("all", one);
    shelf.keep("a", 1);
    shelf.keep("evil", 601);
    const ended = await rebuildTelling(shelf).catch(({ message }: Error) => message);
    expect(ended).toEqual(
      typeof expected === "string" ? expected : expect.objectContaining(expected),
    );
    expect([...shelf.active]).toEqual([
      ["all", all],
      ["evil", own],
    ]);
  });

  test("remembers its tenant when it resumes", async () => {
    const shelf = failing();
    shelf.active.set("all", one);
    const after = shelf.keep("a", 602);
    for (const tenant of ["b", "c"]) shelf.keep(tenant, tenant === "b" ? 601 : 1);
    saveLost(shelf, ["a"], after);
    expect(await rebuildTelling(shelf)).toMatchObject({ replayed: 1, lost: ["a", "b"] });
    expect(versionsOf(shelf)).toEqual({ all: 2, a: 1, b: 1 });
  });

  test("switches a tenant that it replays from its start when it resumes", async () => {
    const failed = Promise.withResolvers<void>();
    const stop = new AbortController();
    let fails = true;
    const shelf = startCounted(async (_ctx, { tenantId }) => {
      if (tenantId === "b" && fails) throw disliked;
      await failed.promise;
      return [];
    });
    shelf.active.set("all", one);
    for (const n of [1, 2]) shelf.keep("a", n);
    shelf.keep("b", 3);
    const tell = () => {
      stop.abort(disliked);
      failed.resolve();
    };
    const { runtime, projection } = shelf;
    const stopped = rebuild(runtime, { projection, tell, signal: stop.signal });
    await expect(stopped).rejects.toBe(disliked);
    expect(shelf.positions.get("all")).toMatchObject({ tenant: "a", replayed: 1, lost: ["b"] });
    fails = false;
    const { told, ...rebuilt } = await rebuildTelling(shelf);
    expect([rebuilt, told]).toEqual([{ replayed: 3, hasSwitched: true }, []]);
    expect(versionsOf(shelf)).toEqual({ all: 2 });
  });

  test("fails with the event's error if that cannot be saved, and retries the event", async () => {
    const shelf = failing();
    shelf.keep("evil", 601);
    const { saveRebuild } = shelf.store;
    const saves = async (...given: Parameters<typeof saveRebuild>) => {
      if (given[2].lost !== undefined) throw new Error("no answer");
      return saveRebuild(...given);
    };
    Object.assign(shelf.store, { saveRebuild: saves });
    await expect(rebuildTelling(shelf)).rejects.toBe(disliked);
    Object.assign(shelf.store, { saveRebuild });
    expect((await rebuildTelling(shelf)).told).toHaveLength(1);
  });

  test("keeps its tenant if saving fails for the next one", async () => {
    const shelf = failing();
    for (const n of [601, 602]) shelf.keep("evil", n);
    const { saveRebuild } = shelf.store;
    const stop = new AbortController();
    let losses = 0;
    const saves = async (...given: Parameters<typeof saveRebuild>) => {
      if (given[2].lost === undefined || ++losses !== 2) return saveRebuild(...given);
      stop.abort(disliked); // so that the position is saved once more
      throw new Error("no answer");
    };
    Object.assign(shelf.store, { saveRebuild: saves });
    const { runtime, projection } = shelf;
    await expect(rebuild(runtime, { projection, signal: stop.signal })).rejects.toBe(disliked);
    expect([losses, shelf.saved.at(-1)]).toMatchObject([3, { lost: ["evil"] }]);
    const { told, ...rebuilt } = await rebuildTelling(shelf);
    expect([rebuilt.lost, told.map(({ eventId }) => eventId)]).toEqual([["evil"], ["e-602"]]);
  });

  test.each([2, 3, 4])(
    "tells about the event in this call or the next one if save %i fails",
    async (fails) => {
      const turns = async (count: number) => {
        for (let turn = 0; turn < count; turn += 1) await new Promise((done) => setImmediate(done));
      };
      const shelf = startCounted(async (_ctx, { payload: { n } }) => {
        await turns(n);
        throw disliked;
      });
      const tenants = ["a", "b", "c", "d"];
      for (const [n, tenant] of tenants.entries()) shelf.keep(tenant, 2 * n);
      const { saveRebuild } = shelf.store;
      let saves = 0;
      const saveSlowly = async (...given: Parameters<typeof saveRebuild>) => {
        const isRefused = ++saves === fails;
        if (saves > 1) await turns(3); // others fail and save in this time
        if (isRefused) throw new Error("no answer");
        return saveRebuild(...given);
      };
      Object.assign(shelf.store, { saveRebuild: saveSlowly });
      const told = new Set<string | undefined>();
      const { runtime, projection } = shelf;
      const tell = ({ tenantId }: UncountedEvent) => void told.add(tenantId);
      await expect(rebuild(runtime, { projection, tell })).rejects.toThrow();
      const lost = shelf.saved.flatMap((saved) => saved.lost ?? []);
      expect([...told]).toEqual(expect.arrayContaining(lost));
      expect(await rebuild(runtime, { projection, tell })).toMatchObject({ lost: tenants });
      expect([...told].sort()).toEqual(tenants);
    },
  );

  test("gives up when more than a thousand tenants have such events", async () => {
    const tenants = Array.from({ length: 999 }, (_, n) => `t${n}`);
    const shelf = failing();
    for (const tenant of ["x", "y"]) for (const n of [601, 602]) shelf.keep(tenant, n);
    saveLost(shelf, tenants, "");
    const what = `events of more than 1000 tenants cannot be counted by ${countedName}`;
    const message = `${what}, so that it has not switched: ${disliked.message}`;
    // The second call resumes before the event with which the first one gave up.
    for (const call of ["first", "second"]) {
      const gaveUp = await rebuildTelling(shelf).catch((error: unknown) => error);
      expect(gaveUp, call).toBeInstanceOf(Error);
      expect(gaveUp).toMatchObject({ message, cause: disliked });
      expect(shelf.saved.at(-1)).toMatchObject({ tenant: "x", lost: [...tenants, "x"] });
      expect(shelf.active.size).toBe(0);
    }
  });

  const misfit = "the payload of counted.added e-1 does not fit its schema any more";
  test.each<[string, KeptFacts, string]>([
    ["its row is no JSON", { text: "{" }, "the kept event is not JSON"],
    [
      "its payload fits no more",
      { envelope: { payload: { n: 1_001 } } },
      `${misfit} (n: Too big: expected number to be <=1000)`,
    ],
  ])("because %s says why", async (_, facts, reason) => {
    const shelf = startCounted(() => expect.unreachable());
    shelf.keep("a", 1, facts);
    const { told } = await rebuildTelling(shelf);
    expect(told).toEqual([{ tenantId: "a", type: "counted.added", eventId: "e-1", reason }]);
  });

  test("because of what is no error says what it is", async () => {
    const shelf = failing("no error");
    shelf.keep("a", 601);
    expect((await rebuildTelling(shelf)).told).toMatchObject([{ reason: "no error" }]);
  });
});

describe("the run of a replayed event", () => {
  /** Replays one event, and returns what the projection got, with its lines. */
  async function replayed(facts: KeptFacts, tenantId?: string) {
    const got: [ProjectionContext, unknown, unknown][] = [];
    const shelf = startCounted((...given) => {
      got.push(given);
      given[0].log.info("seen");
      return [];
    });
    shelf.keep(tenantId, 1, facts);
    await rebuildTelling(shelf);
    const [ctx, event, run] = got[0] ?? expect.unreachable();
    return { ctx, event, run, lines: shelf.linesOf("seen") };
  }

  test("gets the payload that its schema makes, for the declared version", async () => {
    const { event, run } = await replayed({ envelope: { payload: { n: "7" } } }, "acme");
    const ids = { eventId: "e-1", causedBy: "c-1", origRequestId: "o-1", tenantId: "acme" };
    expect(event).toEqual({ kind: "shared", type: "counted.added", ...ids, payload: { n: 7 } });
    expect(run).toEqual({ version: 2 });
  });

  test("is that of its user without roles, in the chain of its request", async () => {
    const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
    const trace = { traceparent: `00-${traceId}-00f067aa0ba902b7-01` };
    const { ctx, lines } = await replayed({ envelope: { userId: "ann" }, trace }, "acme");
    expect(ctx.user).toEqual({ id: "ann", tenantId: "acme", roles: [], kind: "user" });
    expect([Object.isFrozen(ctx.user), Object.isFrozen(ctx.user.roles)]).toEqual([true, true]);
    expect([ctx.requestId, ctx.trace.traceId]).toEqual(["o-1", traceId]);
    const ids = { requestId: "o-1", origRequestId: "o-1", eventId: "e-1", causedBy: "c-1" };
    const handler = `${countedName}:counted.added`;
    expect(lines).toEqual([
      expect.objectContaining({ ...ids, handler, tenantId: "acme", userId: "ann" }),
    ]);
    expect(() => ctx.acrossTenants("a test")).toThrow(AccessDeniedError);
  });

  test("is the system's if its sender's was", async () => {
    const { ctx } = await replayed({ envelope: { originator: "system" } });
    expect(() => ctx.acrossTenants("a test")).not.toThrow();
  });
});
