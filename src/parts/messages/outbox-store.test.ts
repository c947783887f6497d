import { expect, test } from "vitest";
import type { Claims } from "../once/claims.ts";
import {
  nothing,
  type OutboxRow,
  type OutboxStore,
  type Sweeping,
  type SweepStop,
  sum,
  sweepClaim,
  sweepShards,
  timeText,
} from "./outbox-store.ts";

/** Sweeps the first shard. All other shards are empty. */
const sweepShard = (
  given: Omit<Sweeping, "signal" | "work">,
  before: string,
  signal: AbortSignal | undefined,
  work: Sweeping["work"],
) => sweepShards({ ...given, signal, work }, "shard", Number(before));

const row = (number: number): OutboxRow => ({
  shard: "shard#0",
  sort: timeText(number),
  eventId: `e${number}`,
  type: "file.created",
  text: "{}",
});

/** A shard in memory with its reads, and claims that note what becomes of them. */
function shardOf(
  count: number,
  { most = 100, isTaken = true, isLost = (): boolean => false } = {},
) {
  const rows = Array.from({ length: count }, (_, number) => row(number));
  const reads: [before: string, limit: number, after: string | undefined][] = [];
  const claimed: string[] = [];
  const store = {
    pending: async (_shard: string, before: string, limit: number, after?: string) => {
      reads.push([before, limit, after]);
      return rows
        .filter(({ sort }) => sort < before && (after === undefined || sort > after))
        .slice(0, Math.min(limit, most));
    },
    firsts: ([shard = "", ...empty]: readonly string[], before: string) =>
      Promise.allSettled([store.pending(shard, before, 1), ...empty.map(() => [])]),
  };
  const claim = { isLost, release: async () => void claimed.push("released") };
  const claims = {
    take: async (key: ReturnType<typeof sweepClaim>, { waitMs }: { waitMs: number }) => {
      claimed.push(`${JSON.stringify(key) === JSON.stringify(sweepClaim("shard#0"))} ${waitMs}`);
      return isTaken ? { kind: "taken", claim } : { kind: "running" };
    },
  };
  const stops = new Map<string, SweepStop>();
  // Safe: a sweep calls no other member of the store and of the claims.
  const given = {
    store: store as unknown as OutboxStore,
    claims: claims as unknown as Claims,
    stops,
    seen: () => undefined,
    held: () => undefined,
  };
  return { given, rows, reads, claimed, stops };
}

const end = timeText(1_000);

/** Work that takes the rows out of the shard, each page with an answer. */
const taking =
  (rows: OutboxRow[], pages: number[] = []) =>
  async (page: readonly OutboxRow[]) => {
    pages.push(page.length);
    for (const done of page) rows.splice(rows.indexOf(done), 1);
    return { swept: { dispatched: page.length, left: 0, setAside: 0 }, hasAnswers: true };
  };

/** Work that gets no answer. */
const failing = (pages: string[][]) => async (page: readonly OutboxRow[]) => {
  pages.push(page.map(({ eventId }) => eventId));
  return { swept: { dispatched: 0, left: page.length, setAside: 0 }, hasAnswers: false };
};

test("reads an empty shard once, without a claim", async () => {
  const { given, reads, claimed } = shardOf(0);
  expect(await sweepShard(given, end, undefined, taking([]))).toEqual(nothing);
  expect([reads, claimed]).toEqual([[[end, 1, undefined]], []]);
});

test("leaves a shard that another sweep has claimed", async () => {
  const { given, rows, reads, claimed } = shardOf(3, { isTaken: false });
  expect(await sweepShard(given, end, undefined, taking(rows))).toEqual({
    dispatched: 0,
    left: 1,
    setAside: 0,
  });
  expect([reads.length, claimed]).toEqual([1, ["true 0"]]);
});

test("sweeps a shard page by page under its claim, and releases the claim", async () => {
  const { given, rows, reads, claimed, stops } = shardOf(205);
  const pages: number[] = [];
  expect(await sweepShard(given, end, undefined, taking(rows, pages))).toEqual({
    dispatched: 205,
    left: 0,
    setAside: 0,
  });
  expect(pages).toEqual([100, 100, 5]);
  expect(reads).toEqual([
    [end, 1, undefined],
    [end, 100, undefined],
    [end, 100, timeText(99)],
    [end, 100, timeText(199)],
    [end, 100, timeText(204)],
  ]);
  expect([claimed, stops.size]).toEqual([["true 0", "released"], 0]);
});

test("continues after a page that is not full", async () => {
  const { given, rows } = shardOf(5, { most: 2 });
  const { dispatched } = await sweepShard(given, end, undefined, taking(rows));
  expect(dispatched).toBe(5);
});

test("does not read rows at or after the end", async () => {
  const { given, rows } = shardOf(5);
  const pages: number[] = [];
  await sweepShard(given, timeText(3), undefined, taking(rows, pages));
  expect(pages).toEqual([3]);
});

test("stops after a page without an answer, and the next sweep starts after it", async () => {
  const { given, claimed, stops } = shardOf(5, { most: 2 });
  const pages: string[][] = [];
  const sweep = () => sweepShard(given, end, undefined, failing(pages));
  expect(await sweep()).toEqual({ dispatched: 0, left: 2, setAside: 0 });
  expect([...stops]).toEqual([["shard#0", { after: timeText(1), blocked: new Set() }]]);
  await sweep();
  await sweep();
  expect(pages).toEqual([["e0", "e1"], ["e2", "e3"], ["e4"]]);
  expect(claimed.filter((text) => text === "released")).toHaveLength(3);
});

test("a sweep that starts in the middle wraps once, and stops at the row where it started", async () => {
  const { given, rows, reads, stops } = shardOf(4);
  stops.set("shard#0", { after: timeText(1), blocked: new Set() });
  const pages: string[][] = [];
  const work = async (page: readonly OutboxRow[]) => {
    pages.push(page.map(({ eventId }) => eventId));
    return taking(rows)(page);
  };
  const { dispatched } = await sweepShard(given, end, undefined, work);
  expect(pages).toEqual([
    ["e2", "e3"],
    ["e0", "e1"],
  ]);
  expect([dispatched, stops.size]).toEqual([4, 0]);
  expect(reads.slice(3)).toEqual([
    [`${timeText(1)} `, 100, undefined],
    [`${timeText(1)} `, 100, timeText(1)],
  ]);
});

test("remembers with the stop which groups are blocked, until it returns to the first rows", async () => {
  const { given, rows, stops } = shardOf(6, { most: 2 });
  const pages: [ids: string, blocked: string][] = [];
  let isOut = true;
  const work: Sweeping["work"] = async (page, blocked) => {
    const ids = page.map(({ eventId }) => eventId).join(" ");
    pages.push([ids, [...blocked].join(" ")]);
    blocked.add("a");
    const isLeftOut = ids !== "e0 e1" && isOut;
    if (!isOut) return taking(rows)(page);
    return { swept: nothing, hasAnswers: false, isLeftOut };
  };
  const sweep = () => sweepShard(given, end, undefined, work);
  await sweep();
  await sweep();
  expect(pages.splice(0)).toEqual([
    ["e0 e1", ""],
    ["e2 e3", "a"],
    ["e0 e1", ""],
  ]);
  expect([...stops]).toEqual([["shard#0", { after: timeText(3), blocked: new Set(["a"]) }]]);
  isOut = false;
  await sweep();
  expect(pages).toEqual([
    ["e4 e5", "a"],
    ["e0 e1", ""],
    ["e2 e3", "a"],
  ]);
  expect([rows.length, stops.size]).toEqual([0, 0]);
});

test("an aborted sweep or a lost claim stops before the next page", async () => {
  const aborted = shardOf(5, { most: 2 });
  const end1 = new AbortController();
  const work = taking(aborted.rows);
  const swept = await sweepShard(aborted.given, end, end1.signal, async (page) => {
    end1.abort();
    return work(page);
  });
  expect([swept, aborted.claimed.at(-1)]).toEqual([
    { dispatched: 2, left: 1, setAside: 0 },
    "released",
  ]);

  const last = shardOf(2, { most: 2 });
  const end2 = new AbortController();
  const takingLast = taking(last.rows);
  expect(
    await sweepShard(last.given, end, end2.signal, async (page) => {
      end2.abort();
      return takingLast(page);
    }),
  ).toEqual({ dispatched: 2, left: 0, setAside: 0 });

  let isLost = false;
  const lost = shardOf(5, { most: 2, isLost: () => isLost });
  const more = taking(lost.rows);
  const { dispatched } = await sweepShard(lost.given, end, undefined, async (page) => {
    isLost = true;
    return more(page);
  });
  expect([dispatched, lost.claimed.at(-1)]).toEqual([2, "released"]);
});

test("a page that the abort left out is no outage: the next sweep starts with the first row", async () => {
  const { given, rows, stops, claimed } = shardOf(5, { most: 2 });
  const ending = new AbortController();
  const swept = await sweepShard(given, end, ending.signal, async (page) => {
    ending.abort();
    return { swept: { dispatched: 0, left: page.length, setAside: 0 }, hasAnswers: false };
  });
  // The page, and one of the rows behind it.
  expect(swept).toEqual({ dispatched: 0, left: 3, setAside: 0 });
  expect([rows.length, stops.size, claimed.at(-1)]).toEqual([5, 0, "released"]);
});

test("releases the claim when the work fails", async () => {
  const { given, claimed } = shardOf(1);
  const failed = sweepShard(given, end, undefined, async () => {
    throw new Error("no table");
  });
  await expect(failed).rejects.toThrow("no table");
  expect(claimed).toEqual(["true 0", "released"]);
});

test("adds up each count", () => {
  const one = { dispatched: 1, left: 2, setAside: 3 };
  expect(sum(one, { dispatched: 10, left: 20, setAside: 30 })).toEqual({
    dispatched: 11,
    left: 22,
    setAside: 33,
  });
  expect(sum(nothing, one)).toEqual(one);
});

test("pads times to 15 digits, so that they sort as text", () => {
  expect([timeText(7), timeText(1_700_000_000_000)]).toEqual([
    "000000000000007",
    "001700000000000",
  ]);
});
