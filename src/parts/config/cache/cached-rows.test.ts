import { describe, expect, test } from "vitest";
import { recordedMetrics } from "../../../../test/support/recorded-metrics.ts";
import {
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
} from "../declare/declaration.ts";
import type { KeyRows } from "../read/key-rows.ts";
import {
  type ConfigRow,
  type RowAddress,
  type RowOwner,
  systemPartition,
  tenantPartition,
  userPartition,
} from "../read/rows.ts";
import {
  type CachedRowsOptions,
  createCachedRows,
  groupKeys,
  type StaleRead,
} from "./cached-rows.ts";
import { abandonMs, processSchedule } from "./flights.ts";

const theme = "files:config:theme";
const limit = "files:config:limit";
const closed = "files:config:closed";
const plan = "billing:config:plan";
const scopes = {
  [theme]: "user",
  [limit]: "tenant",
  [closed]: "system",
  [plan]: "tenant",
} as const;
const ann: RowOwner = { tenantId: "acme", userId: "ann" };

const keyGroups = groupKeys([
  {
    id: theme,
    feature: "files",
    name: "theme",
    definition: createUserConfig("text", {}).definition,
  },
  {
    id: limit,
    feature: "files",
    name: "limit",
    definition: createTenantConfig("number", {}).definition,
  },
  {
    id: closed,
    feature: "files",
    name: "closed",
    definition: createSystemConfig("boolean", {}).definition,
  },
  {
    id: plan,
    feature: "billing",
    name: "plan",
    definition: createTenantConfig("text", {}).definition,
  },
]);

/** A cache before a store that the test answers for, by hand or at once. */
function start(options: Partial<CachedRowsOptions> = {}) {
  const rows = new Map<string, ConfigRow>();
  const calls: {
    addresses: readonly RowAddress[];
    answer: () => void;
    fail: (error: unknown) => void;
  }[] = [];
  const stale: StaleRead[] = [];
  const timers = new Set<() => void>();
  const state = { now: 1_000_000, isManual: false, failure: undefined as unknown, random: 0 };
  const cached = createCachedRows({
    ttlMs: 5_000,
    maxStaleMs: 30_000,
    maxTenants: 10,
    keyGroups,
    clock: { now: () => state.now },
    schedule: {
      soon: (work) => void Promise.resolve().then(work),
      later: (work) => {
        timers.add(work);
        return () => timers.delete(work);
      },
      random: () => state.random,
    },
    reader: {
      read: (addresses) => {
        const { promise, resolve, reject } = Promise.withResolvers<(ConfigRow | undefined)[]>();
        const stored = addresses.map(({ partition, key }) => rows.get(`${partition}/${key}`));
        const call = { addresses, answer: () => resolve(stored), fail: reject };
        calls.push(call);
        if (state.failure !== undefined) call.fail(state.failure);
        else if (!state.isManual) call.answer();
        return promise;
      },
    },
    ...options,
  });
  const put = (
    partition: string,
    key: string,
    value: unknown,
    version = 1,
    more: Partial<ConfigRow> = {},
  ) => {
    const row = { value, version, ...more };
    rows.set(`${partition}/${key}`, row);
    return row;
  };
  const view = (owner: RowOwner = ann) => cached.view(owner, (read) => void stale.push(read));
  const storedValue = ({ levels }: KeyRows) =>
    levels.find(({ row }) => row !== undefined)?.row?.value;
  const read = async (key: keyof typeof scopes, owner: RowOwner = ann) =>
    storedValue(await view(owner).rowsOf(key, scopes[key]));
  return { cached, calls, put, read, rows, stale, state, timers, storedValue, view };
}

/** Lets everything that is ready go on. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe("a cache miss", () => {
  test("fetches every key of the feature at every scope in one call, absent rows included", async () => {
    const { calls, put, read } = start();
    put(tenantPartition("acme"), limit, 7);

    expect([await read(limit), await read(theme), await read(closed), await read(limit)]).toEqual([
      7,
      undefined,
      undefined,
      7,
    ]);
    expect(calls).toHaveLength(1);
    expect(calls[0]?.addresses).toEqual([
      { partition: userPartition("acme", "ann"), key: theme },
      { partition: tenantPartition("acme"), key: theme },
      { partition: tenantPartition("acme"), key: limit },
      { partition: systemPartition(), key: theme },
      { partition: systemPartition(), key: limit },
      { partition: systemPartition(), key: closed },
    ]);
  });

  test("for another feature makes another call, and leaves out partitions without keys", async () => {
    const { calls, read } = start();
    await read(limit);
    await read(plan);

    expect(calls[1]?.addresses).toEqual([
      { partition: tenantPartition("acme"), key: plan },
      { partition: systemPartition(), key: plan },
    ]);
  });

  test("joins concurrent misses and reads already in flight", async () => {
    const { calls, read, state } = start();
    state.isManual = true;
    const first = [
      read(limit),
      read(theme),
      read(limit, { tenantId: "other", userId: undefined }),
      read(plan),
    ];
    await settle();
    const second = read(limit, { tenantId: "acme", userId: "bob" });
    await settle();
    expect(calls.map(({ addresses }) => addresses.length)).toEqual([10, 1]);
    for (const { answer } of calls) answer();

    await Promise.all([...first, second]);
    expect(calls).toHaveLength(2);
  });

  test("asks for a page once, even if it is invalidated or the clock steps before the call", async () => {
    const { cached, calls, put, read, state } = start();
    put(tenantPartition("acme"), limit, 7);
    const reads = [read(limit)];
    cached.invalidate(tenantPartition("acme"), limit);
    reads.push(read(limit));
    state.now += 60_000;
    reads.push(read(limit));
    state.now -= 120_000;
    reads.push(read(limit));

    expect(await Promise.all(reads)).toEqual([7, 7, 7, 7]);
    expect(calls.map(({ addresses }) => addresses.length)).toEqual([6]);
  });

  test("reads at most 100 rows per call, and a larger feature in a call of its own", async () => {
    const keys = Array.from({ length: 60 }, (_, index) => `big:config:k${index}`);
    const declared = keys.map((id) => ({
      id,
      feature: "big",
      name: id,
      definition: createUserConfig("text", {}).definition,
    }));
    const { calls, view } = start({ keyGroups: groupKeys(declared) });
    await view().rowsOf(String(keys[0]), "user");
    expect(calls.map(({ addresses }) => addresses.length)).toEqual([60, 60, 60]);

    const twice = start({
      keyGroups: groupKeys([
        ...declared,
        ...declared.map((key) => ({ ...key, id: `${key.id}-more` })),
      ]),
    });
    await twice.view().rowsOf(String(keys[0]), "user");
    expect(twice.calls.map(({ addresses }) => addresses.length)).toEqual([120, 120, 120]);
  });

  test("fails when the store fails, and caches nothing", async () => {
    const { calls, read, state } = start();
    state.failure = new Error("throttled");
    await expect(read(limit)).rejects.toThrow("throttled");
    state.failure = undefined;

    expect(await read(limit)).toBeUndefined();
    expect(calls).toHaveLength(2);
  });

  test("times out when the store is too slow, and drops its late answer", async () => {
    const { calls, put, read, state, timers } = start();
    put(tenantPartition("acme"), limit, 7);
    state.isManual = true;
    const late = read(limit);
    await settle();
    for (const expire of timers) expire();
    await expect(late).rejects.toThrow("reading configuration took longer than 2000 ms");
    put(tenantPartition("acme"), limit, 8);
    state.isManual = false;
    expect(await read(limit)).toBe(8);
    calls[0]?.answer();
    await settle();

    expect(await read(limit)).toBe(8);
    expect(timers.size).toBe(0);
  });

  test("records the age of its rows", async () => {
    const { cached, put, read, state } = start();
    put(tenantPartition("acme"), limit, 7);
    expect(cached.ageMs(tenantPartition("acme"), limit)).toBeUndefined();
    await read(limit);
    state.now += 1_200;

    expect(cached.ageMs(tenantPartition("acme"), limit)).toBe(1_200);
    state.now -= 5_000;
    expect(cached.ageMs(tenantPartition("acme"), limit)).toBe(0);
  });

  test("does not join a read left in flight by a frozen process", async () => {
    const { calls, put, read, state } = start();
    put(tenantPartition("acme"), limit, 7);
    state.isManual = true;
    const left = read(limit);
    await settle();
    state.now += abandonMs;
    const woken = read(limit);
    await settle();
    expect(calls).toHaveLength(2);
    calls[1]?.answer();

    expect(await woken).toBe(7);
    calls[0]?.fail(new Error("socket hang up"));
    expect(await left).toBe(7);
  });

  test("for an undeclared key or another scope reads the stored row without caching it", async () => {
    const { cached, calls, view } = start();
    cached.noteWrite(systemPartition(), "other:config:key", { value: 1, version: 1 });
    expect(cached.ageMs(systemPartition(), "other:config:key")).toBeUndefined();
    cached.invalidate(systemPartition(), "other:config:key");
    const undeclared = await view().rowsOf("other:config:key", "tenant");
    expect(undeclared.isHeld(0)).toBe(false);
    await view().rowsOf(limit, "user");
    await view().rowsOf(limit, "user");

    expect(calls.map(({ addresses }) => addresses.length)).toEqual([2, 3, 3]);
  });
});

describe("cached rows", () => {
  test("are served immediately while they are younger than ttlMs", async () => {
    const { calls, read, state, view } = start();
    await read(limit);
    state.now += 4_999;
    const one = view();

    expect(one.rowsOf(limit, "tenant")).not.toBeInstanceOf(Promise);
    expect(one.rowsOf(limit, "tenant")).toBe(one.rowsOf(limit, "tenant"));
    expect(calls).toHaveLength(1);
  });

  test("are served immediately up to maxStaleMs, while a single call refreshes them", async () => {
    const { calls, put, read, state, storedValue, view } = start();
    put(tenantPartition("acme"), limit, 7);
    await read(limit);
    put(tenantPartition("acme"), limit, 8, 2);
    state.now += 29_999;
    const served = [view().rowsOf(limit, "tenant"), view().rowsOf(limit, "tenant")];
    expect(served.map((rows) => rows instanceof Promise || storedValue(rows))).toEqual([7, 7]);
    await settle();

    expect(await read(limit)).toBe(8);
    expect(calls).toHaveLength(2);
  });

  test("older than maxStaleMs make the read wait for the store", async () => {
    const { put, read, state, stale } = start();
    put(tenantPartition("acme"), limit, 7);
    await read(limit);
    put(tenantPartition("acme"), limit, 8, 2);
    state.now += 30_000;

    expect(await read(limit)).toBe(8);
    expect(stale).toEqual([]);
  });

  test("are refreshed up to a tenth of ttlMs earlier after a background refresh", async () => {
    const { calls, read, state } = start();
    state.random = 1;
    await read(limit);
    state.now += 4_999;
    await read(limit);
    expect(calls).toHaveLength(1);
    state.now += 1;
    await read(limit);
    await settle();
    expect(calls).toHaveLength(2);
    state.now += 4_499;
    await read(limit);
    expect(calls).toHaveLength(2);
    state.now += 1;
    await read(limit);
    await settle();
    expect(calls).toHaveLength(3);
  });

  test("expire when the clock is set back", async () => {
    const { calls, read, state } = start();
    await read(limit);
    state.now -= 60_000;
    await read(limit);

    expect(calls).toHaveLength(2);
  });

  test("are read from the store each time when ttlMs is 0", async () => {
    const { calls, put, read, stale } = start({ ttlMs: 0, maxStaleMs: 0 });
    await read(limit);
    put(tenantPartition("acme"), limit, 8);

    expect(await read(limit)).toBe(8);
    expect([calls.length, stale.length]).toEqual([2, 0]);
  });

  test("of an evicted tenant are fetched again, even by a view that held them", async () => {
    const { calls, cached, read, view } = start({ maxTenants: 1 });
    const one = view();
    await one.rowsOf(limit, "tenant");
    await read(limit, { tenantId: "other", userId: "ann" });
    await one.rowsOf(limit, "tenant");

    expect(calls).toHaveLength(3);
    expect(cached.size()).toEqual({ tenants: 1, users: 1 });
  });
});

test("counts reads from the cache with the row age, reads from the store, and stale reads when the store fails", async () => {
  const { metrics, values } = recordedMetrics();
  const { read, state } = start({ metrics });
  await read(limit);
  await read(closed);
  state.now += 1_000;
  await read(limit);
  await read(limit);
  await read(theme, { tenantId: "acme", userId: "bob" });
  state.failure = new Error("throttled");
  state.now += 30_000;
  await read(limit);

  expect(values).toEqual([
    ["keelson.config.reads miss", 1],
    ["keelson.config.reads hit", 1],
    ["keelson.config.age", 0],
    ["keelson.config.reads hit", 1],
    ["keelson.config.age", 1],
    ["keelson.config.reads hit", 1],
    ["keelson.config.age", 1],
    ["keelson.config.reads miss", 1],
    ["keelson.config.reads stale", 1],
  ]);
});

/** Rows of which a refresh has failed after 1.5 s. */
async function failedSlowly() {
  const started = start();
  const { calls, put, read, state } = started;
  put(tenantPartition("acme"), limit, 7);
  await read(limit);
  state.now += 30_000;
  state.isManual = true;
  const slow = read(limit);
  await settle();
  state.now += 1_500;
  calls[1]?.fail(new Error("timeout"));
  expect(await slow).toBe(7);
  return started;
}

describe("a failing store", () => {
  test("keeps the old value in use, and logs one warning per minute and page", async () => {
    const { put, read, stale, state } = start();
    put(tenantPartition("acme"), limit, 7);
    await read(limit);
    state.failure = new Error("throttled");
    state.now += 30_000;
    expect([await read(limit), await read(limit)]).toEqual([7, 7]);
    expect(stale).toEqual([{ key: limit, ageMs: 30_000, reason: "Error: throttled" }]);
    state.now += 60_000;
    await read(limit);
    expect(stale).toHaveLength(2);
    state.failure = undefined;
    put(tenantPartition("acme"), limit, 8, 2);
    expect(await read(limit)).toBe(8);
    state.failure = new Error("throttled");
    state.now += 30_000;
    await read(limit);

    expect(stale).toHaveLength(3);
  });

  test("during a background refresh causes no warning and no unhandled rejection", async () => {
    const { calls, put, read, stale, state } = start();
    put(tenantPartition("acme"), limit, 7);
    await read(limit);
    state.failure = new Error("throttled");
    state.now += 6_000;
    expect(await read(limit)).toBe(7);
    await settle();
    expect(await read(limit)).toBe(7);
    await settle();

    expect([calls.length, stale.length]).toEqual([3, 0]);
  });

  test("that failed slowly is not retried for as long as it took, and the old value is served immediately", async () => {
    const { calls, read, state, stale } = await failedSlowly();
    state.now += 1_499;
    expect(await read(limit)).toBe(7);
    expect([calls.length, stale.length]).toEqual([2, 1]);
    state.now += 1;
    state.isManual = false;
    expect(await read(limit)).toBe(7);

    expect(calls).toHaveLength(3);
  });

  test("is retried immediately when nothing is cached or a frozen process abandoned the read", async () => {
    const { calls, put, read, state } = start();
    state.isManual = true;
    const slow = read(limit);
    await settle();
    state.now += 1_500;
    calls[0]?.fail(new Error("timeout"));
    await expect(slow).rejects.toThrow("timeout");
    state.isManual = false;
    put(tenantPartition("acme"), limit, 7);
    expect(await read(limit)).toBe(7);
    state.now += 30_000;
    state.isManual = true;
    const frozen = read(limit);
    await settle();
    state.now += 600_000;
    calls[2]?.fail(new Error("timeout"));
    expect(await frozen).toBe(7);
    state.isManual = false;
    put(tenantPartition("acme"), limit, 8, 2);

    expect(await read(limit)).toBe(8);
  });

  test("is retried, and never taken for absent rows, when the clock is set back after the failure", async () => {
    const { calls, put, read, stale, state } = start();
    put(tenantPartition("acme"), limit, 7);
    state.failure = new Error("throttled");
    await expect(read(limit)).rejects.toThrow("throttled");
    state.now -= 3_600_000;
    await expect(read(limit)).rejects.toThrow("throttled");
    state.failure = undefined;

    expect(await read(limit)).toBe(7);
    expect([calls.length, stale.length]).toEqual([3, 0]);
  });

  test("that failed slowly is retried, and reported again, when the clock is set back", async () => {
    const { put, read, state, stale } = await failedSlowly();
    state.isManual = false;
    state.failure = new Error("throttled");
    state.now -= 3_600_000;
    expect(await read(limit)).toBe(7);
    expect(stale).toMatchObject([{ ageMs: 31_500 }, { ageMs: 0, reason: "Error: throttled" }]);
    state.failure = undefined;
    put(tenantPartition("acme"), limit, 8, 2);

    expect(await read(limit)).toBe(8);
  });

  test("may throw synchronously, which fails the read like any other error", async () => {
    const { read } = start({
      reader: {
        read: () => {
          throw new Error("no table");
        },
      },
    });

    await expect(read(limit)).rejects.toThrow("no table");
  });
});

describe("a write by this process", () => {
  test("is visible to its next read without a call", async () => {
    const { cached, calls, read } = start();
    await read(limit);
    cached.noteWrite(tenantPartition("acme"), limit, { value: 9, version: 1 });

    expect(await read(limit)).toBe(9);
    expect(calls).toHaveLength(1);
  });

  test("is visible to existing views and rows", async () => {
    const { cached, storedValue, view } = start();
    const one = view();
    const held = await one.rowsOf(limit, "tenant");
    cached.noteWrite(systemPartition(), limit, { value: 9, version: 1 });

    expect(held.isHeld(1_000_000)).toBe(false);
    expect(storedValue(await one.rowsOf(limit, "tenant"))).toBe(9);
  });

  test("survives a refresh that began before it", async () => {
    const { cached, calls, put, read, state } = start();
    put(tenantPartition("acme"), limit, 1);
    state.isManual = true;
    const first = read(limit);
    await settle();
    cached.noteWrite(tenantPartition("acme"), limit, put(tenantPartition("acme"), limit, 2, 2));
    calls[0]?.answer();

    expect(await first).toBe(2);
    expect(await read(limit)).toBe(2);
  });

  test("is cached before any read, even if a replica does not have it yet", async () => {
    const { cached, read } = start();
    cached.noteWrite(tenantPartition("acme"), limit, { value: 9, version: 1 });

    expect(await read(limit)).toBe(9);
  });

  test("of an older version is ignored, unless the newer one has expired", async () => {
    const { cached, read, state } = start();
    const note = (value: number, version: number, more = {}) =>
      cached.noteWrite(tenantPartition("acme"), limit, { value, version, ...more });
    note(5, 5);
    note(4, 4);
    expect(await read(limit)).toBe(5);
    note(6, 6, { expiresAt: state.now / 1000 + 1 });
    state.now += 1_000;
    note(1, 1);
    expect(await read(limit)).toBe(1);
    note(7, 7, { deleted: true });
    note(2, 2);
    expect(await read(limit)).toBe(7);
    cached.notePut(tenantPartition("acme"), limit, { value: 3, version: 3 });

    expect(await read(limit)).toBe(3);
  });

  test("of an older version replaces a row written before it, whose tenant was erased since", async () => {
    const { cached, put, read, state } = start();
    const at = (seconds: number) => ({ updatedAt: new Date(seconds * 1000).toISOString() });
    put(tenantPartition("acme"), limit, 5, 5, at(100));
    await read(limit);
    state.now += 1_999;
    cached.noteWrite(tenantPartition("acme"), limit, { value: 4, version: 4, ...at(200) });
    expect(await read(limit)).toBe(5);
    state.now += 1;
    cached.noteWrite(tenantPartition("acme"), limit, { value: 4, version: 4, ...at(99) });
    expect(await read(limit)).toBe(5);
    cached.noteWrite(tenantPartition("acme"), limit, { value: 2, version: 2, ...at(200) });

    expect(await read(limit)).toBe(2);
  });

  test("replaces a row that was written by hand with a version that JavaScript cannot hold", async () => {
    const { cached, put, read } = start();
    const large = (2n ** 60n) as unknown as number; // safe: as DynamoDB's client reads it
    put(tenantPartition("acme"), limit, 5, large);
    expect(await read(limit)).toBe(5);
    cached.noteWrite(tenantPartition("acme"), limit, { value: 6, version: 1 });

    expect(await read(limit)).toBe(6);
  });

  test("survives a refresh that began before it, even if a test puts a lower version", async () => {
    const { cached, calls, put, read, state } = start();
    put(tenantPartition("acme"), limit, 5, 5);
    state.isManual = true;
    const first = read(limit);
    await settle();
    cached.notePut(tenantPartition("acme"), limit, put(tenantPartition("acme"), limit, 1));
    calls[0]?.answer();

    expect(await first).toBe(1);
  });

  test("with an unknown outcome makes the next read wait, and an in-flight read ask again", async () => {
    const { cached, calls, put, read, state } = start();
    put(tenantPartition("acme"), limit, 1);
    state.isManual = true;
    const before = read(limit);
    await settle();
    cached.invalidate(tenantPartition("acme"), limit);
    put(tenantPartition("acme"), limit, 2, 2);
    calls[0]?.answer();
    await settle();
    calls[1]?.answer();
    expect(await before).toBe(2);
    cached.invalidate(tenantPartition("acme"), limit);
    put(tenantPartition("acme"), limit, 3, 3);
    state.isManual = false;

    expect(await read(limit)).toBe(3);
  });
});

describe("an answer from the store", () => {
  const again = async (
    known: Partial<ConfigRow>,
    found: ConfigRow | undefined,
    afterMs: number,
  ) => {
    const { put, read, rows, state } = start();
    put(tenantPartition("acme"), limit, "known", 5, known);
    await read(limit);
    if (found === undefined) rows.clear();
    else put(tenantPartition("acme"), limit, found.value, found.version, found);
    state.now += afterMs;
    await read(limit);
    await settle();
    return read(limit);
  };

  test("never replaces a row or a tombstone with a lower version", async () => {
    expect(await again({}, { value: "older", version: 4 }, 30_000)).toBe("known");
    expect(await again({ deleted: true }, { value: "older", version: 4 }, 30_000)).toBe("known");
  });

  test("with a lower version replaces a row or a tombstone that was written before it, after the replica lag", async () => {
    const [early, late] = ["2026-11-02T09:30:00.000Z", "2026-11-02T09:30:00.001Z"] as const;
    const first = (updatedAt?: string) => ({
      value: "first",
      version: 1,
      ...(updatedAt === undefined ? {} : { updatedAt }),
    });
    const known = { updatedAt: early };
    expect(await again(known, first(late), 30_000)).toBe("first");
    expect(await again({ ...known, deleted: true }, first(late), 30_000)).toBe("first");
    expect(await again({ updatedAt: late }, first(early), 30_000)).toBe("known");
    expect(await again(known, first(early), 30_000)).toBe("known");
    expect(await again(known, first(), 30_000)).toBe("known");
    expect(await again({}, first(late), 30_000)).toBe("known");
    expect(await again({ updatedAt: "yesterday" }, first(late), 30_000)).toBe("known");
  });

  test("with a lower version and a later time may be a replica's old row, as long as it may lag", async () => {
    const { cached, put, read, state } = start({ ttlMs: 100, maxStaleMs: 100 });
    const [early, late] = ["2026-11-02T09:30:00.000Z", "2026-11-02T09:30:05.000Z"] as const;
    put(tenantPartition("acme"), limit, 4, 4, { updatedAt: late }); // by a clock that is ahead
    cached.noteWrite(tenantPartition("acme"), limit, { value: 5, version: 5, updatedAt: early });
    state.now += 1_999;

    expect(await read(limit)).toBe(5);
  });

  test("with the same or a higher version replaces the row", async () => {
    expect(await again({}, { value: "same", version: 5 }, 30_000)).toBe("same");
    expect(await again({}, { value: "newer", version: 6 }, 30_000)).toBe("newer");
  });

  test("without the row removes it, unless the row is so new that a replica may lack it", async () => {
    expect(await again({}, undefined, 30_000)).toBeUndefined();
    const { cached, read, state } = start({ ttlMs: 100, maxStaleMs: 100 });
    cached.noteWrite(tenantPartition("acme"), limit, { value: 9, version: 1 });
    state.now += 1_999;
    expect(await read(limit)).toBe(9);
    state.now += 100;
    expect(await read(limit)).toBeUndefined();
  });

  test("with a lower version replaces an expired row, which the store has deleted since", async () => {
    expect(await again({ expiresAt: 1_010 }, { value: "first", version: 1 }, 30_000)).toBe("first");
  });
});

test("the process schedule waits for the event loop turn and for timers", async () => {
  const ran: string[] = [];
  const cancel = processSchedule.later(() => void ran.push("cancelled"), 0);
  cancel();
  await new Promise<void>((resolve) => void processSchedule.soon(resolve));
  await new Promise<void>((resolve) => void processSchedule.later(resolve, 1));

  expect(ran).toEqual([]);
  expect(processSchedule.random()).toBeLessThan(1);
});

test("createCachedRows defaults to the process clock and schedule", async () => {
  const cached = createCachedRows({
    ttlMs: 5_000,
    maxStaleMs: 5_000,
    maxTenants: 1,
    keyGroups,
    reader: { read: async () => [] },
  });
  const { levels } = await cached
    .view({ tenantId: undefined, userId: undefined }, () => {})
    .rowsOf(closed, "system");

  expect(levels).toEqual([{ source: "system-row", partition: systemPartition(), row: undefined }]);
});
