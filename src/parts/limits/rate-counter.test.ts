import { expect, test } from "vitest";
import { RateCounter } from "./rate-counter.ts";
import type { RateStore } from "./rate-store.ts";

const minute = 60_000;
const start = Date.UTC(2026, 10, 28, 12);
const acme = { text: "tenant acme", tenantId: "acme" };

/** Counts as the row of a window does. */
function memoryStore() {
  const rows = new Map<string, number>();
  const counts: number[] = [];
  const store: Pick<RateStore, "take"> = {
    take: async ({ text, startMs }, count, number) => {
      counts.push(count);
      const row = `${text} ${startMs}`;
      const before = rows.get(row) ?? 0;
      await Promise.resolve();
      if (before >= number) return undefined;
      rows.set(row, before + count);
      return before;
    },
  };
  return { rows, counts, store };
}

function counterOf(options: Partial<ConstructorParameters<typeof RateCounter>[0]> = {}) {
  const memory = memoryStore();
  const clock = { nowMs: start, now: () => clock.nowMs };
  const limit = { id: "x", window: "minute" } as const;
  const make = () => new RateCounter({ limit, store: memory.store, clock, ...options });
  return { ...memory, clock, make, counter: make() };
}

const admitted = async (counter: RateCounter, number: number, times: number, tokens = 1) => {
  let count = 0;
  for (let time = 0; time < times; time += 1)
    if ((await counter.take(acme, number, tokens)).isAdmitted) count += 1;
  return count;
};

test("admits the number of a window, and again in the next, which is aligned in UTC", async () => {
  const { counter, clock } = counterOf();
  expect(await admitted(counter, 10, 30)).toBe(10);
  clock.nowMs = start + minute - 1;
  expect(await admitted(counter, 10, 5)).toBe(0);
  clock.nowMs = start + minute;
  expect(await admitted(counter, 10, 30)).toBe(10);
});

test("tells what is left, and when the window ends", async () => {
  const { counter, clock } = counterOf();
  clock.nowMs = start + 1_234;
  const { remaining, resetMs } = await counter.take(acme, 10, 3);
  expect([remaining, resetMs]).toEqual([7, start + minute]);
});

test("leases ever more tokens, and ever fewer as the row empties", async () => {
  const { counter, counts } = counterOf();
  await admitted(counter, 200, 400);
  const largest = Math.max(...counts);
  expect(counts.slice(0, 5)).toEqual([1, 2, 4, 8, 16]);
  expect(largest).toBeLessThanOrEqual(20);
  expect(counts.slice(counts.indexOf(largest))).toEqual(
    counts.slice(counts.indexOf(largest)).toSorted((one, other) => other - one),
  );
});

test("remembers a refusal until the window ends, without further calls", async () => {
  const { counter, counts, make } = counterOf();
  await admitted(make(), 5, 5);
  expect(await admitted(counter, 5, 100)).toBe(0);
  expect(counts).toHaveLength(6);
});

test("asks again once a minute in a window of a day, where an operator may reset the number", async () => {
  const { counter, counts, rows, clock } = counterOf({ limit: { id: "x", window: "day" } });
  await admitted(counter, 2, 5);
  const calls = counts.length;
  rows.clear();
  expect(await admitted(counter, 2, 5)).toBe(0);
  clock.nowMs += minute;
  expect(await admitted(counter, 2, 5)).toBe(2);
  expect(counts.length).toBeGreaterThan(calls);
});

test("asks at once when the number has been raised", async () => {
  const { counter } = counterOf();
  expect(await admitted(counter, 2, 5)).toBe(2);
  expect(await admitted(counter, 4, 5)).toBe(2);
});

test("takes no lease above a lowered number", async () => {
  const { counter } = counterOf();
  expect(await admitted(counter, 100, 10)).toBe(10);
  const held = (await counter.take(acme, 5, 0)).remaining;
  expect(await admitted(counter, 5, 100)).toBe(held);
});

test("refuses more tokens than the number without a call, and 0 refuses everything", async () => {
  const { counter, counts } = counterOf();
  expect(await admitted(counter, 5, 1, 6)).toBe(0);
  expect(await admitted(counter, 0, 1)).toBe(0);
  expect(counts).toEqual([]);
  expect(await admitted(counter, 5, 1, 4)).toBe(1);
  expect(await admitted(counter, 5, 1, 2)).toBe(0);
  expect(await admitted(counter, 5, 1, 1)).toBe(1);
});

test("requests that arrive together share one call", async () => {
  const { counter, counts } = counterOf();
  const verdicts = await Promise.all(
    Array.from({ length: 50 }, async () => counter.take(acme, 40, 1)),
  );
  expect(verdicts.filter(({ isAdmitted }) => isAdmitted)).toHaveLength(40);
  expect(counts).toEqual([1, 39]);
});

test("a request that another request's lease has left nothing for takes one of its own", async () => {
  const { counter, counts } = counterOf();
  const verdicts = await Promise.all(
    [1, 3, 2].map(async (tokens) => counter.take(acme, 6, tokens)),
  );
  expect(verdicts.map(({ isAdmitted }) => isAdmitted)).toEqual([true, true, true]);
  expect(counts).toEqual([1, 5]);
});

test("a request that waits across the end of a window counts in the one in which it came", async () => {
  const { store, clock, rows } = counterOf();
  const { promise, resolve } = Promise.withResolvers<void>();
  const { counter } = counterOf({
    clock,
    store: {
      take: async (...given) => {
        await promise;
        return store.take(...given);
      },
    },
  });
  const both = Promise.all([1, 1].map(async (tokens) => counter.take(acme, 5, tokens)));
  clock.nowMs += minute;
  resolve();
  expect((await both).map(({ resetMs }) => resetMs)).toEqual([start + minute, start + minute]);
  expect([...rows.values()]).toEqual([2]);
});

test("gives back the token of a request that another limit refuses", async () => {
  const { counter, counts } = counterOf();
  counter.giveBack(await counter.take(acme, 1, 1));
  expect(await admitted(counter, 1, 2)).toBe(1);
  expect(counts).toHaveLength(1);
});

test("reports the first refusal of a window and partition only", async () => {
  const { counter, clock } = counterOf();
  const reports = async () => {
    const verdicts = [];
    for (let time = 0; time < 3; time += 1) verdicts.push(await counter.take(acme, 1, 1));
    return verdicts.map((verdict) => counter.isFirstRefusal(verdict));
  };
  expect(await reports()).toEqual([false, true, false]);
  clock.nowMs += minute;
  expect(await reports()).toEqual([false, true, false]);
});

test("a failed call fails every request that waits for it, and the next one asks again", async () => {
  let calls = 0;
  const { counter } = counterOf({
    store: {
      take: async () => {
        calls += 1;
        if (calls === 1) throw new Error("down");
        return 0;
      },
    },
  });
  const results = await Promise.allSettled([1, 1].map(async () => counter.take(acme, 5, 1)));
  expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await admitted(counter, 5, 1)).toBe(1);
});

test("holds a bounded number of partitions, and forgets those that were not used for longest", async () => {
  const { counter, counts } = counterOf({ maxPartitions: 4 });
  const take = (text: string) => counter.take({ text }, 9, 1);
  for (const name of ["a", "b", "a", "c", "a", "d", "a", "e"]) await take(name);
  const calls = counts.length;
  await take("a");
  expect(counts.length - calls).toBeLessThanOrEqual(1);
  await take("b");
  expect(counts.at(-1)).toBe(1); // forgotten, so it begins anew
});
