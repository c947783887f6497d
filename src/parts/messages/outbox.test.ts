import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { storeOf, timersOf, World } from "../../../test/once/world.ts";
import { recordedMetrics } from "../../../test/support/recorded-metrics.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import { claimKey, keyText, leaseMs, skewMs, takenClaim } from "../once/claim.ts";
import { createClaims } from "../once/claims.ts";
import { createOutbox, type EventBus, type OutboxOptions } from "./outbox.ts";
import type { OutboxRow, OutboxStore } from "./outbox-store.ts";

const graceMs = 10_000;
const sweepKey = (shard: string) => claimKey(["outbox-sweep"], shard);

/** What the processes of a test share: rows that wait, claims, a bus, and the time. */
class Shared {
  readonly world = new World();
  rows: OutboxRow[] = [];
  /** The IDs of each call of the bus. */
  readonly puts: string[][] = [];
  readonly reads: string[] = [];
  readonly lines: [level: string, msg: string, data?: unknown][] = [];
  /** Why and when rows were set aside. */
  readonly asides: [row: OutboxRow, reason: string, nowMs: number][] = [];
  /** Decides what the bus says of an event. */
  reasonOf: (eventId: string, call: number) => string | undefined = () => undefined;
  /** Decides whether it is the event's fault. */
  isFinal: (eventId: string) => boolean = () => false;

  /** Puts a row as if it had been committed `ageMs` ago. */
  add(shard: number, number: number, ageMs: number): OutboxRow {
    const eventId = eventIdOf(shard, number);
    const clock = { now: () => this.world.nowMs - ageMs };
    const row = outboxOf(this, { clock }).row(
      { eventId, type: "file.created" },
      `{"eventId":"${eventId}"}`,
    );
    this.rows.push(row);
    return row;
  }

  dispatched(): string[] {
    return this.puts.flat();
  }
}

/** An ID whose first digits put it into a shard. */
function eventIdOf(shard: number, number: number): string {
  return `${(shard + 8 * number).toString(16).padStart(8, "0")}-0000-8000-8000-000000000000`;
}

type Fakes = Partial<OutboxStore & EventBus> & {
  readonly name?: string;
  readonly clock?: { now(): number };
  readonly opened?: () => void;
  /** How many rows fit a page, whatever is asked for. */
  readonly most?: number;
  /** Decides when a call is carried out. */
  readonly turn?: (call: string) => Promise<unknown>;
  readonly metrics?: Metrics;
  readonly sweepDue?: OutboxOptions["sweepDue"];
};

/** The outbox of one process. */
function outboxOf(shared: Shared, fakes: Fakes = {}) {
  return processOf(shared, fakes).outbox;
}

function processOf(
  shared: Shared,
  {
    name = "a",
    clock,
    opened = () => {},
    most = Number.POSITIVE_INFINITY,
    turn = async () => {},
    metrics,
    sweepDue,
    ...own
  }: Fakes = {},
) {
  const { world } = shared;
  const process = { isAlive: true, name };
  const fine = async (call: string) => {
    await turn(call);
    return "fine" as const;
  };
  const schedule = timersOf(world, process, turn);
  const time = clock ?? { now: () => world.nowMs };
  let owners = 0;
  const claims = createClaims({
    store: storeOf(world, process, fine),
    clock: time,
    schedule,
    newOwner: () => `${name}${++owners}`,
  });
  const store: OutboxStore = {
    items: (row) => [{ Put: row }],
    remove: async (row) => {
      await turn("remove");
      shared.rows = shared.rows.filter(({ eventId }) => eventId !== row.eventId);
    },
    setAside: async (row, reason, nowMs) => {
      await turn("setAside");
      if (!shared.rows.includes(row)) return false;
      shared.rows = shared.rows.filter((other) => other !== row);
      shared.asides.push([row, reason, nowMs]);
      return true;
    },
    pending: async (shard, before, limit, after = "") => {
      await turn("pending");
      shared.reads.push(shard);
      const waiting = shared.rows.filter(
        ({ shard: of, sort }) => of === shard && sort < before && sort > after,
      );
      return waiting
        .sort((one, other) => (one.sort < other.sort ? -1 : 1))
        .slice(0, Math.min(limit, most));
    },
    firsts: (shards, before) =>
      Promise.allSettled(shards.map((shard) => store.pending(shard, before, 1))),
    ...own,
  };
  const bus: EventBus = {
    name: "shop",
    put: async (events) => {
      await turn("put");
      const eventIds = events.map(({ text }) => (JSON.parse(text) as { eventId: string }).eventId);
      shared.puts.push(eventIds);
      return eventIds.map((eventId) => {
        const reason = shared.reasonOf(eventId, shared.puts.length);
        return reason === undefined ? undefined : { reason, isFinal: shared.isFinal(eventId) };
      });
    },
    ...own,
  };
  const line = (level: string) => (msg: string, data?: unknown) =>
    void shared.lines.push([level, msg, data]);
  const log: Logger = {
    info: line("info"),
    warn: line("warn"),
    error: line("error"),
    debug: line("debug"),
    child: () => log,
  };
  const outbox = createOutbox({
    store,
    bus: async () => {
      opened();
      return bus;
    },
    claims,
    clock: time,
    log,
    metrics,
    sweepDue,
  });
  return { outbox, claims, schedule };
}

function idsOf(rows: readonly OutboxRow[]): string[] {
  return rows.map(({ eventId }) => eventId);
}

const reject = async () => {
  throw new Error("connect ECONNREFUSED");
};

test("rows of a shard sort by time, and an event always belongs to the same one of eight shards", () => {
  fc.assert(
    fc.property(fc.uuid(), fc.nat(4e12), fc.nat(4e12), (eventId, one, other) => {
      const rowAt = (ms: number) =>
        outboxOf(new Shared(), { clock: { now: () => ms } }).row({ eventId, type: "a.b" }, "{}");
      const [first, second] = [rowAt(one), rowAt(other)];
      expect(first).toMatchObject({ eventId, type: "a.b", text: "{}" });
      expect(first.shard).toMatch(/^shard#[0-7]$/);
      expect(second.shard).toBe(first.shard);
      expect(Math.sign(one - other)).toBe(
        first.sort < second.sort ? -1 : first.sort > second.sort ? 1 : 0,
      );
    }),
  );
});

test("two events of the same moment have separate rows", () => {
  const shared = new Shared();
  expect(shared.add(1, 0, 0).sort).not.toBe(shared.add(1, 1, 0).sort);
});

test("removes events that the bus accepted, and keeps and logs the others", async () => {
  const shared = new Shared();
  const [first, second, third] = [shared.add(0, 0, 0), shared.add(1, 1, 0), shared.add(2, 2, 0)];
  shared.reasonOf = (eventId) =>
    eventId === second.eventId ? "ThrottlingException slow down" : undefined;
  await outboxOf(shared).dispatch([first, second, third]);
  expect(shared.dispatched()).toEqual(idsOf([first, second, third]));
  expect(shared.rows).toEqual([second]);
  expect(shared.lines).toEqual([
    [
      "warn",
      "event.dispatch_failed",
      { events: [`file.created ${second.eventId}`], reason: "ThrottlingException slow down" },
    ],
  ]);
});

test("logs nothing when a dispatch succeeds", async () => {
  const shared = new Shared();
  await outboxOf(shared).dispatch([shared.add(0, 0, 0), shared.add(0, 1, 0)]);
  expect([shared.rows, shared.lines]).toEqual([[], []]);
});

test("does not open the bus for an empty dispatch", async () => {
  let opened = 0;
  await outboxOf(new Shared(), { opened: () => void opened++ }).dispatch([]);
  expect(opened).toBe(0);
});

test.each<[string, Fakes, number]>([
  ["the bus cannot be reached", { put: reject }, 1],
  [
    "the bus cannot be opened",
    {
      opened: () => {
        throw new Error("connect ECONNREFUSED");
      },
    },
    1,
  ],
  ["the store removes nothing", { remove: reject }, 1],
])(
  "a dispatch never throws, and logs the remaining events, even if %s",
  async (_what, fakes, left) => {
    const shared = new Shared();
    const row = shared.add(3, 0, 0);
    await outboxOf(shared, fakes).dispatch([row]);
    expect(shared.rows).toHaveLength(left);
    const data = { events: [`file.created ${row.eventId}`], reason: "Error: connect ECONNREFUSED" };
    expect(shared.lines).toEqual([["warn", "event.dispatch_failed", data]]);
  },
);

test("a sweep dispatches rows past the grace period, and leaves younger ones", async () => {
  const shared = new Shared();
  const old = [shared.add(5, 0, graceMs + 60_000), shared.add(5, 1, graceMs)];
  const young = [shared.add(5, 2, graceMs - 1), shared.add(5, 3, 0)];
  expect(await outboxOf(shared).sweep({ graceMs })).toEqual({
    dispatched: 2,
    left: 0,
    setAside: 0,
  });
  expect(shared.puts).toEqual([idsOf(old)]);
  expect(shared.rows).toEqual(young);
  shared.world.nowMs += graceMs;
  expect(await outboxOf(shared).sweep({ graceMs })).toEqual({
    dispatched: 2,
    left: 0,
    setAside: 0,
  });
  expect(shared.rows).toEqual([]);
});

/** All shards in the order of a sweep, whose time chooses the first. */
const shardsFrom = (first: number) => Array.from({ length: 8 }, (_, index) => (first + index) % 8);

test("a sweep begins with a shard that its time chooses, so that none is always last", async () => {
  for (const laterMs of [0, 1, 5, 7.75]) {
    const shared = new Shared();
    shared.world.nowMs += laterMs;
    await outboxOf(shared).sweep({ graceMs });
    expect(shared.reads).toEqual(
      shardsFrom(1 + Math.trunc(laterMs)).map((shard) => `shard#${shard}`),
    );
  }
});

test("a sweep sends due jobs and events side by side, so that a backlog of one delays none of the other", async () => {
  const shared = new Shared();
  for (let number = 0; number < 250; number += 1) shared.add(0, number, graceMs + 1_000);
  const allSent = Promise.withResolvers<void>();
  const putsBefore: number[] = [];
  const sweepDue = async () => {
    putsBefore.push(shared.puts.length);
    await allSent.promise;
    return { dispatched: 1, left: 0, setAside: 0 };
  };
  shared.reasonOf = (_eventId, call) => void (call === 3 && allSent.resolve());
  const swept = await outboxOf(shared, { sweepDue }).sweep({ graceMs });

  expect([putsBefore, swept.dispatched]).toEqual([[0], 251]);
});

test("events that cannot be read do not stop the due jobs, which the log counts before the error is thrown", async () => {
  const shared = new Shared();
  const sweepDue = async () => ({ dispatched: 3, left: 0, setAside: 0 });
  const sweep = outboxOf(shared, { sweepDue, pending: reject }).sweep({ graceMs });

  await expect(sweep).rejects.toThrow("connect ECONNREFUSED");
  expect(shared.lines).toEqual([["info", "outbox.swept", { dispatched: 3, left: 0, setAside: 0 }]]);
});

test("due jobs that cannot be read do not stop the events, and their error is thrown at the end", async () => {
  const shared = new Shared();
  shared.add(0, 0, graceMs + 5_000);
  const { metrics, values } = recordedMetrics();
  const sweepDue = async () => {
    throw new Error("throttled");
  };
  const sweep = outboxOf(shared, { metrics, sweepDue }).sweep({ graceMs });

  await expect(sweep).rejects.toThrow("throttled");
  expect([shared.puts.length, shared.rows]).toEqual([1, []]);
  expect(values.map(([name]) => name)).toContain("keelson.outbox.age");
  values.length = 0;
  await expect(outboxOf(shared, { metrics, sweepDue }).sweep({ graceMs })).rejects.toThrow();
  expect(values).toEqual([]);
});

test("a sweep visits all shards one by one, oldest rows first", async () => {
  const shared = new Shared();
  for (let shard = 7; shard >= 0; shard -= 1) {
    for (const number of [0, 1, 2]) shared.add(shard, number, graceMs + 1_000 - number);
  }
  expect(await outboxOf(shared).sweep({ graceMs })).toEqual({
    dispatched: 24,
    left: 0,
    setAside: 0,
  });
  expect(shared.puts).toEqual(
    shardsFrom(1).map((shard) => [eventIdOf(shard, 0), eventIdOf(shard, 1), eventIdOf(shard, 2)]),
  );
  expect(shared.lines).toEqual([
    ["info", "outbox.swept", { dispatched: 24, left: 0, setAside: 0 }],
  ]);
});

test("a sweep of empty shards reads each once, claims none and logs nothing", async () => {
  const shared = new Shared();
  expect(await outboxOf(shared).sweep({ graceMs })).toEqual({
    dispatched: 0,
    left: 0,
    setAside: 0,
  });
  expect(shared.reads).toEqual(shardsFrom(1).map((shard) => `shard#${shard}`));
  expect([[...shared.world.seen], shared.lines]).toEqual([[], []]);
});

test("a sweep leaves a shard claimed by another sweep until that lease ends", async () => {
  const shared = new Shared();
  const { world } = shared;
  shared.add(3, 0, graceMs);
  shared.add(4, 1, graceMs);
  const other = processOf(shared, { name: "b" });
  await other.claims.take(sweepKey("shard#3"), { waitMs: 0, stop: [] });
  const { outbox } = processOf(shared);

  expect(await outbox.sweep({ graceMs })).toEqual({ dispatched: 1, left: 1, setAside: 0 });
  expect(shared.dispatched()).toEqual([eventIdOf(4, 1)]);

  world.nowMs += leaseMs + skewMs;
  expect(await outbox.sweep({ graceMs })).toEqual({ dispatched: 0, left: 1, setAside: 0 });
  world.nowMs += 1;
  expect(await outbox.sweep({ graceMs })).toEqual({ dispatched: 1, left: 0, setAside: 0 });
  expect(shared.rows).toEqual([]);
});

test("a sweep releases its shards, so that the next sweep need not wait", async () => {
  const shared = new Shared();
  shared.add(3, 0, graceMs);
  await outboxOf(shared).sweep({ graceMs });
  expect(shared.world.records.size).toBe(0);
  shared.add(3, 1, graceMs);
  expect(await outboxOf(shared, { name: "b" }).sweep({ graceMs })).toEqual({
    dispatched: 1,
    left: 0,
    setAside: 0,
  });
});

test.each([
  [99, [99]],
  [100, [100]],
  [250, [100, 100, 50]],
])("a sweep of %i rows of one shard proceeds page by page", async (count, sizes) => {
  const shared = new Shared();
  for (let number = 0; number < count; number += 1) shared.add(2, number, graceMs + count - number);
  expect(await outboxOf(shared).sweep({ graceMs })).toEqual({
    dispatched: count,
    left: 0,
    setAside: 0,
  });
  expect(shared.puts.map(({ length }) => length)).toEqual(sizes);
  expect(shared.dispatched()).toEqual(
    Array.from({ length: count }, (_, number) => eventIdOf(2, number)),
  );
});

test("a sweep continues after a page that is not full", async () => {
  const shared = new Shared();
  for (let number = 0; number < 5; number += 1) shared.add(2, number, graceMs + 5 - number);
  expect(await outboxOf(shared, { most: 2 }).sweep({ graceMs })).toEqual({
    dispatched: 5,
    left: 0,
    setAside: 0,
  });
  expect(shared.puts.map(({ length }) => length)).toEqual([2, 2, 1]);
});

test("rows that the bus refuses do not block later rows or other shards", async () => {
  const shared = new Shared();
  for (let number = 0; number < 250; number += 1) shared.add(2, number, graceMs + 250 - number);
  shared.add(6, 0, graceMs);
  const refused = [eventIdOf(2, 101), eventIdOf(2, 102)];
  shared.reasonOf = (eventId) => (refused.includes(eventId) ? "InternalFailure" : undefined);
  expect(await outboxOf(shared).sweep({ graceMs })).toEqual({
    dispatched: 249,
    left: 2,
    setAside: 0,
  });
  expect(shared.puts.map(({ length }) => length)).toEqual([100, 100, 50, 1]);
  expect(shared.lines).toEqual([
    [
      "warn",
      "event.dispatch_failed",
      { events: refused.map((id) => `file.created ${id}`), reason: "InternalFailure" },
    ],
    ["warn", "outbox.swept", { dispatched: 249, left: 2, setAside: 0 }],
  ]);
  expect(shared.world.records.size).toBe(0);
});

test("a sweep resumes where the last one stopped, and reaches each row even if the bus keeps failing on others", async () => {
  const shared = new Shared();
  for (let number = 0; number < 450; number += 1) shared.add(2, number, graceMs + 450 - number);
  const isOff = (eventId: string) => eventId < eventIdOf(2, 250);
  shared.reasonOf = (eventId) => (isOff(eventId) ? "InternalFailure" : undefined);
  const outbox = outboxOf(shared);
  const sweep = async () => {
    const before = shared.puts.length;
    await outbox.sweep({ graceMs });
    return shared.puts.slice(before).map(([first = ""]) => Number.parseInt(first, 16) >> 3);
  };
  expect(await sweep()).toEqual([0]);
  expect(await sweep()).toEqual([100]);
  expect(await sweep()).toEqual([200, 300, 400, 0]); // to the end, then from the beginning
  expect(await sweep()).toEqual([100]);
  expect(shared.rows).toHaveLength(250);
  shared.reasonOf = () => undefined;
  expect(await sweep()).toEqual([200, 0, 100]); // no further than where it began
  expect(shared.rows).toEqual([]);
});

test("a page of events that cannot be set aside does not block later events", async () => {
  const shared = new Shared();
  for (let number = 0; number < 150; number += 1) shared.add(2, number, graceMs + 150 - number);
  const isBad = (eventId: string) => eventId < eventIdOf(2, 100);
  shared.reasonOf = (eventId) => (isBad(eventId) ? "MalformedDetail" : undefined);
  shared.isFinal = isBad;
  expect(await outboxOf(shared, { setAside: reject }).sweep({ graceMs })).toEqual({
    dispatched: 50,
    left: 100,
    setAside: 0,
  });
});

test("a sweep leaves a shard when the bus accepts nothing of a page, and continues with the next shard", async () => {
  const shared = new Shared();
  for (let number = 0; number < 250; number += 1) shared.add(2, number, graceMs + 250 - number);
  shared.add(6, 0, graceMs);
  shared.reasonOf = (_eventId, call) => (call === 1 ? "InternalFailure" : undefined);
  expect(await outboxOf(shared).sweep({ graceMs })).toEqual({
    dispatched: 1,
    left: 100,
    setAside: 0,
  });
  expect(shared.puts.map(({ length }) => length)).toEqual([100, 1]);
});

describe("an event that the bus will never accept", () => {
  const reason = "MalformedDetail Detail is malformed.";

  test("is set aside by a sweep, and the events around it are dispatched exactly once", async () => {
    const shared = new Shared();
    const rows = [0, 1, 2, 3].map((number) => shared.add(2, number, graceMs + 4 - number));
    const [good, bad] = rows;
    shared.add(5, 0, graceMs);
    shared.reasonOf = (eventId) => (eventId === bad?.eventId ? reason : undefined);
    shared.isFinal = () => true;
    const { metrics, values } = recordedMetrics();
    const { outbox } = processOf(shared, { metrics });
    expect(await outbox.sweep({ graceMs })).toEqual({ dispatched: 4, left: 0, setAside: 1 });
    expect(shared.asides).toEqual([[bad, reason, shared.world.nowMs]]);
    expect(shared.rows).toEqual([]);
    expect(shared.dispatched()).toHaveLength(5);
    expect(shared.lines).toEqual([
      ["error", "event.set_aside", { type: "file.created", eventId: bad?.eventId, reason }],
      ["info", "outbox.swept", { dispatched: 4, left: 0, setAside: 1 }],
    ]);
    expect(shared.dispatched()).toContain(good?.eventId);
    expect(await outbox.sweep({ graceMs })).toEqual({ dispatched: 0, left: 0, setAside: 0 });
    expect(shared.puts).toHaveLength(2);
    expect(values).toEqual([
      ["keelson.dead_letters event", 1],
      ["keelson.outbox.length", 5],
      ["keelson.outbox.age", (graceMs + 4) / 1_000],
      ["keelson.outbox.length", 0],
      ["keelson.outbox.age", 0],
    ]);
  });

  test("does not block later events, even if a whole page is refused", async () => {
    const shared = new Shared();
    for (let number = 0; number < 150; number += 1) shared.add(2, number, graceMs + 150 - number);
    const isBad = (eventId: string) => eventId < eventIdOf(2, 100);
    shared.reasonOf = (eventId) => (isBad(eventId) ? reason : undefined);
    shared.isFinal = isBad;
    expect(await outboxOf(shared).sweep({ graceMs })).toEqual({
      dispatched: 50,
      left: 0,
      setAside: 100,
    });
  });

  test("stays after its commit, because only a sweep that has claimed the shard may set it aside", async () => {
    const shared = new Shared();
    const row = shared.add(2, 0, graceMs);
    shared.reasonOf = () => reason;
    shared.isFinal = () => true;
    const { outbox } = processOf(shared);
    await outbox.dispatch([row]);
    expect([shared.rows, shared.asides]).toEqual([[row], []]);
    expect(shared.lines).toEqual([
      ["warn", "event.dispatch_failed", { events: [`file.created ${row.eventId}`], reason }],
    ]);
    expect(await outbox.dispatchLeft([row])).toEqual({ dispatched: 0, left: 0, setAside: 1 });
    expect(shared.asides).toHaveLength(1);
  });

  test("stays and is logged if it cannot be set aside, and does not block later events", async () => {
    const shared = new Shared();
    const rows = [0, 1, 2].map((number) => shared.add(2, number, graceMs + 3 - number));
    const bad = rows[1] as OutboxRow; // safe: there are three
    shared.reasonOf = (eventId) => (eventId === bad.eventId ? reason : undefined);
    shared.isFinal = () => true;
    expect(await outboxOf(shared, { setAside: reject, most: 2 }).sweep({ graceMs })).toEqual({
      dispatched: 2,
      left: 1,
      setAside: 0,
    });
    expect(shared.rows).toEqual([bad]);
    const refused = {
      type: "file.created",
      eventId: bad.eventId,
      refusal: reason,
      reason: "Error: connect ECONNREFUSED",
    };
    expect(shared.lines).toContainEqual(["warn", "event.set_aside_failed", refused]);
  });

  test("is not logged if it has disappeared in the meantime", async () => {
    const shared = new Shared();
    const row = shared.add(2, 0, graceMs);
    shared.reasonOf = () => reason;
    shared.isFinal = () => true;
    expect(await outboxOf(shared, { setAside: async () => false }).dispatchLeft([row])).toEqual({
      dispatched: 0,
      left: 0,
      setAside: 0,
    });
    expect(shared.lines).toEqual([]);
  });

  test("may be an unreadable row, which is set aside without asking the bus", async () => {
    const shared = new Shared();
    const row = {
      ...shared.add(2, 0, graceMs),
      type: "unknown",
      text: "",
      unreadable: { pk: "shard#2", envelope: 7 },
    };
    shared.rows = [row];
    expect(await outboxOf(shared, { put: reject }).sweep({ graceMs })).toEqual({
      dispatched: 0,
      left: 0,
      setAside: 1,
    });
    expect(shared.asides.map(([aside]) => aside)).toEqual([row]);
    expect(shared.lines[0]).toEqual([
      "error",
      "event.set_aside",
      {
        type: "unknown",
        eventId: row.eventId,
        reason: expect.stringContaining("the row is not an event"),
      },
    ]);
  });
});

test("a sweep aborted before it begins reads nothing and records no metrics", async () => {
  const shared = new Shared();
  shared.add(0, 0, graceMs);
  const { metrics, values } = recordedMetrics();
  const outbox = outboxOf(shared, { metrics });
  expect(await outbox.sweep({ graceMs, signal: AbortSignal.abort() })).toEqual({
    dispatched: 0,
    left: 0,
    setAside: 0,
  });
  expect([shared.reads, shared.puts, values]).toEqual([[], [], []]);
});

test.each([
  ["shard#1", { dispatched: 1, left: 1, setAside: 0 }],
  ["shard#6", { dispatched: 2, left: 0, setAside: 0 }],
  ["due", undefined],
])(
  "a sweep aborted at %s counts each shard that it leaves, and knows the age of the oldest row it has read of",
  async (at, swept) => {
    const shared = new Shared();
    for (const shard of [1, 6]) shared.add(shard, 0, graceMs + 50_000);
    const stopping = new AbortController();
    const { metrics, values } = recordedMetrics();
    const turn = async () => void (shared.reads.at(-1) === at && stopping.abort());
    const sweepDue = async () => {
      if (at === "due") stopping.abort();
      return { dispatched: 0, left: 0, setAside: 0 };
    };
    const { outbox } = processOf(shared, { metrics, turn, sweepDue });
    await outbox.sweep({ graceMs, signal: stopping.signal });
    expect(stopping.signal.aborted).toBe(true);
    // After "due", nothing is read, so that nothing is known.
    const measured = [
      ["keelson.outbox.length", 2],
      ["keelson.outbox.age", 60],
    ];
    expect(values).toEqual(swept === undefined ? [] : measured);
    const level = (swept?.left ?? 0) > 0 ? "warn" : "info";
    expect(shared.lines).toEqual(swept === undefined ? [] : [[level, "outbox.swept", swept]]);
  },
);

test("the reported age is that of the oldest row, including shards claimed by another sweep and due jobs", async () => {
  const shared = new Shared();
  const { world } = shared;
  shared.add(2, 0, graceMs + 90_000);
  shared.add(5, 0, graceMs + 5_000);
  world.records.set(keyText(sweepKey("shard#2")), takenClaim("b1", world.nowMs));
  const { metrics, values } = recordedMetrics();
  const sweepDue: OutboxOptions["sweepDue"] = async (_signal, { seen }) => {
    const left = shared.rows.filter(({ shard }) => shard === "due#1");
    seen(left);
    return { dispatched: 0, left: left.length, setAside: 0 };
  };
  const sweep = () => outboxOf(shared, { metrics, sweepDue }).sweep({ graceMs });
  await sweep();
  shared.rows.push({ ...shared.add(3, 0, 300_000), shard: "due#1" });
  await sweep();
  shared.rows = [{ ...shared.add(3, 0, 0), shard: "due#1", sort: "no time" }];
  await sweep();
  expect(
    values.filter(([name]) => name === "keelson.outbox.age").map(([, seconds]) => seconds),
  ).toEqual([100, 300, 0]);
});

test.each([
  ["info", "only another sweep holds messages", false, false],
  ["warn", "one of its own stays as well", true, false],
  ["warn", "it was aborted", false, true],
] as const)("logs its end as %s if %s", async (level, _what, isRefused, isAborted) => {
  const shared = new Shared();
  shared.add(2, 0, graceMs);
  shared.world.records.set(keyText(sweepKey("shard#2")), takenClaim("b1", shared.world.nowMs));
  const stopping = new AbortController();
  const sweepDue: OutboxOptions["sweepDue"] = async (_signal, { held }) => {
    held();
    return { dispatched: 0, left: isRefused ? 2 : 1, setAside: 0 };
  };
  const turn = async () => void (isAborted && stopping.abort());
  const { outbox } = processOf(shared, { sweepDue, turn });
  const { left } = await outbox.sweep({ graceMs, signal: stopping.signal });
  expect(left).toBe(isRefused ? 3 : 2);
  expect(shared.lines).toEqual([[level, "outbox.swept", { dispatched: 0, left, setAside: 0 }]]);
});

test("an aborted sweep finishes the current page, counts the shards with more rows, and releases its shards", async () => {
  const shared = new Shared();
  for (let number = 0; number < 250; number += 1) shared.add(2, number, graceMs + 250 - number);
  shared.add(6, 0, graceMs);
  const stopping = new AbortController();
  shared.reasonOf = () => void stopping.abort();
  expect(await outboxOf(shared).sweep({ graceMs, signal: stopping.signal })).toEqual({
    dispatched: 100,
    left: 2,
    setAside: 0,
  });
  expect(shared.puts).toHaveLength(1);
  expect([shared.rows.length, shared.world.records.size]).toEqual([151, 0]);
});

test("a sweep that loses its shard to another stops and leaves the shard to it", async () => {
  const shared = new Shared();
  const { world } = shared;
  for (let number = 0; number < 150; number += 1) shared.add(2, number, graceMs + 150 - number);
  const key = keyText(sweepKey("shard#2"));
  const process = processOf(shared, {
    turn: async (call) => {
      if (call !== "put") return;
      // It was slow, another has taken over, and the next renewal finds out.
      world.records.set(key, takenClaim("b1", world.nowMs));
      process.schedule.tick();
    },
  });
  expect(await process.outbox.sweep({ graceMs })).toEqual({
    dispatched: 100,
    left: 0,
    setAside: 0,
  });
  expect(shared.puts).toHaveLength(1);
  expect([world.records.get(key)?.owner, world.violations]).toEqual(["b1", []]);
});

test("a sweep keeps all rows while the bus is unreachable, logs the reason, and releases the shards", async () => {
  const shared = new Shared();
  shared.add(2, 0, graceMs);
  shared.add(6, 1, graceMs);
  expect(await outboxOf(shared, { put: reject }).sweep({ graceMs })).toEqual({
    dispatched: 0,
    left: 2,
    setAside: 0,
  });
  const reason = "Error: connect ECONNREFUSED";
  expect(shared.lines).toEqual([
    ["warn", "event.dispatch_failed", { events: [`file.created ${eventIdOf(2, 0)}`], reason }],
    ["warn", "event.dispatch_failed", { events: [`file.created ${eventIdOf(6, 1)}`], reason }],
    ["warn", "outbox.swept", { dispatched: 0, left: 2, setAside: 0 }],
  ]);
  expect(shared.world.records.size).toBe(0);
});

test.each<[string, Fakes]>([
  ["be read", { pending: reject }],
  ["remove a row", { remove: reject }],
])("a sweep whose store cannot %s throws, and holds no shard", async (_what, fakes) => {
  const shared = new Shared();
  shared.add(2, 0, graceMs);
  await expect(outboxOf(shared, fakes).sweep({ graceMs })).rejects.toThrow("connect ECONNREFUSED");
  expect(shared.world.records.size).toBe(0);
  expect(await outboxOf(shared, { name: "b" }).sweep({ graceMs })).toEqual({
    dispatched: 1,
    left: 0,
    setAside: 0,
  });
});

test("concurrent sweeps dispatch each row once and leave none, in any interleaving", async () => {
  const shards = fc.array(fc.nat(2), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      shards,
      fc.integer({ min: 2, max: 3 }),
      async (scheduler, given, sweepers) => {
        const shared = new Shared();
        for (const [number, shard] of given.entries()) shared.add(shard, number, graceMs + number);
        const turn = (call: string) => scheduler.schedule(Promise.resolve(), call);
        const swept = await scheduler.waitFor(
          Promise.all(
            Array.from({ length: sweepers }, (_, index) =>
              outboxOf(shared, { name: `p${index}-`, turn }).sweep({ graceMs }),
            ),
          ),
        );
        expect(shared.dispatched().sort()).toEqual(
          given.map((shard, number) => eventIdOf(shard, number)).sort(),
        );
        expect(swept.reduce((sum, { dispatched }) => sum + dispatched, 0)).toBe(given.length);
        expect([shared.rows, shared.world.records.size, shared.world.violations]).toEqual([
          [],
          0,
          [],
        ]);
      },
    ),
  );
});
