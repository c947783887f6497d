import { describe, expect, test } from "vitest";
import { storeOf, timersOf, World } from "../../../test/once/world.ts";
import { recordedMetrics } from "../../../test/support/recorded-metrics.ts";
import type { Logger } from "../../base/log/logger.ts";
import { createClaims } from "../once/claims.ts";
import { deliveryJob } from "./delivery.ts";
import {
  type DueJobsOptions,
  dueId,
  duePlace,
  dueRow,
  queuedRow,
  sendCommitted,
  sweepDueJobs,
} from "./due-jobs.ts";
import type { EqualJob, EqualJobStore } from "./equal-jobs.ts";
import type { FairMode, JobQueues } from "./job-route.ts";
import type { OutboxRow } from "./outbox-store.ts";

interface Fakes {
  readonly taken?: readonly OutboxRow[];
  /** Decides which jobs the queue does not take. */
  readonly fails?: (text: string) => boolean;
  /** What it says then. */
  readonly failure?: string;
  /** Nothing can be set aside. */
  readonly keepsAll?: boolean;
  readonly fairMode?: FairMode;
  /** Marks of equal jobs, by the ID of the job that finds them. */
  readonly marks?: ReadonlyMap<string, EqualJob>;
}

/** A sweep over rows in memory; `taken` are those that somebody takes back while they are looked at. */
function sweepOf(
  rows: OutboxRow[],
  {
    taken = [],
    fails = () => false,
    failure = "connect ECONNREFUSED",
    keepsAll = false,
    fairMode = "off",
    marks = new Map(),
  }: Fakes = {},
) {
  const world = new World();
  const process = { isAlive: true, name: "a" };
  const [sent, lines, read]: [string[], unknown[][], number[]] = [[], [], []];
  const [groups, marked]: [string[], string[]] = [[], []];
  const remove = (row: Pick<OutboxRow, "sort">) => {
    const at = rows.findIndex(({ sort }) => sort === row.sort);
    if (at >= 0) rows.splice(at, 1);
    return at >= 0;
  };
  const line = (level: string) => (msg: string, data?: unknown) =>
    void lines.push([level, msg, data]);
  const log: Logger = {
    info: line("info"),
    warn: line("warn"),
    error: line("error"),
    debug: line("debug"),
    child: () => log,
  };
  const queue: JobQueues["jobs"] = {
    isFinal: (error) => String(error).includes("InvalidMessageContents"),
    send: async (body, { group }) => {
      if (fails(body)) throw new Error(failure);
      sent.push(body);
      groups.push(group);
      return "m1";
    },
  };
  const options: DueJobsOptions = {
    store: {
      firsts: (shards, before) =>
        Promise.allSettled(shards.map((shard) => options.store.pending(shard, before, 1))),
      items: (row) => [{ Put: row }],
      remove: async (row) => void remove(row),
      setAside: async (row) => {
        if (keepsAll) throw new Error("AccessDenied");
        return !taken.includes(row) && remove(row);
      },
      pending: async (shard, before, limit, after = "") => {
        const page = rows.filter(
          (row) => row.shard === shard && row.sort < before && row.sort > after,
        );
        read.push(page.length);
        return page.sort((one, other) => (one.sort < other.sort ? -1 : 1)).slice(0, limit);
      },
    },
    due: { begin: async (place) => !taken.some(({ sort }) => sort === place.sort) },
    jobs: async () => ({ fairMode, jobs: queue, fairJobs: queue }),
    equalJobs: async () => ({
      mark: async (_key, { jobId }) => {
        marked.push(jobId);
        return marks.get(jobId);
      },
      unmark: async () => undefined,
    }),
    stops: new Map(),
    claims: createClaims({
      store: storeOf(world, process, async () => "fine" as const),
      clock: { now: () => world.nowMs },
      schedule: timersOf(world, process, async () => {}),
    }),
    clock: { now: () => world.nowMs },
    log,
  };
  return { options, world, sent, lines, read, groups, marked };
}

const unheard = { seen: () => undefined, held: () => undefined };
const hash = "h".repeat(43);
const jobAt = (
  dueMs: number,
  number = 0,
  group = `${hash}${number}`,
  deduplicationId = hash,
): OutboxRow => {
  const jobId = dueId(dueMs, number);
  return dueRow({
    jobId,
    name: "a.b.c",
    tenantId: "acme",
    group,
    deduplicationId,
    text: `{"n":${number}}`,
  });
};

test("sends the jobs due now from all partitions, and does not read those due later", async () => {
  const rows: OutboxRow[] = [];
  const sweep = sweepOf(rows);
  const { nowMs } = sweep.world;
  for (let n = 0; n < 300; n++) rows.push(jobAt(nowMs - n, n));
  for (let n = 300; n < 2_000; n++) rows.push(jobAt(nowMs + 1 + n, n));

  expect(await sweepDueJobs(sweep.options, undefined, unheard)).toEqual({
    dispatched: 300,
    left: 0,
    setAside: 0,
  });
  expect(new Set(sweep.sent).size).toBe(300);
  expect(Math.max(...sweep.read)).toBeLessThan(100);
  expect(rows).toHaveLength(1_700);
  expect(new Set(rows.map(({ shard }) => shard)).size).toBe(8);
});

test("keeps a job that the queue refuses, and sends the others", async () => {
  const rows: OutboxRow[] = [];
  const sweep = sweepOf(rows, { fails: (text) => text === '{"n":3}' });
  for (let n = 0; n < 10; n++) rows.push(jobAt(sweep.world.nowMs, n));

  expect(await sweepDueJobs(sweep.options, undefined, unheard)).toEqual({
    dispatched: 9,
    left: 1,
    setAside: 0,
  });
  const [left] = rows;
  expect(rows).toHaveLength(1);
  expect(sweep.lines).toEqual([
    [
      "warn",
      "job.dispatch_failed",
      { jobs: [`a.b.c ${left?.eventId}`], reason: "Error: connect ECONNREFUSED" },
    ],
  ]);
});

test("does not send a job cancelled in the meantime, or count a row that another sweep has set aside", async () => {
  const rows: OutboxRow[] = [];
  const taken: OutboxRow[] = [];
  const sweep = sweepOf(rows, { taken });
  const [mine, theirs, odd, gone] = [0, 1, 2, 3].map((n) => jobAt(sweep.world.nowMs, n)) as [
    OutboxRow,
    OutboxRow,
    OutboxRow,
    OutboxRow,
  ]; // safe: there are four
  const unreadable = { ...odd, text: "?" };
  const goneOdd = { ...gone, text: "?" };
  rows.push(mine, theirs, unreadable, goneOdd);
  taken.push(theirs, goneOdd);

  const { metrics, sums } = recordedMetrics();
  expect(await sweepDueJobs({ ...sweep.options, metrics }, undefined, unheard)).toEqual({
    dispatched: 2,
    left: 0,
    setAside: 1,
  });
  expect(sums()).toEqual({ "keelson.dead_letters job": 1 });
  expect(sweep.sent).toEqual(['{"n":0}']);
  expect(sweep.lines).toEqual([
    ["error", "job.set_aside", expect.objectContaining({ job: "a.b.c", jobId: odd.eventId })],
  ]);
});

test("starts no further partition when the sweep is aborted", async () => {
  const rows: OutboxRow[] = [];
  const sweep = sweepOf(rows);
  for (let n = 0; n < 50; n++) rows.push(jobAt(sweep.world.nowMs, n));

  expect(await sweepDueJobs(sweep.options, AbortSignal.abort(), unheard)).toEqual({
    dispatched: 0,
    left: 0,
    setAside: 0,
  });
  expect(sweep.read).toEqual([]);
  expect(duePlace(rows[0]?.eventId)).toEqual({ shard: rows[0]?.shard, sort: rows[0]?.sort });
});

test("begins no further job once the sweep is aborted, keeps each group's order, and counts what is left", async () => {
  const rows: OutboxRow[] = [];
  const stopping = new AbortController();
  const sweep = sweepOf(rows, {
    fails: () => {
      stopping.abort();
      return false;
    },
  });
  const { nowMs } = sweep.world;
  const queued = Array.from({ length: 60 }, (_, n) => jobAt(nowMs - 60 + n, n, "one-group"));
  for (const row of queued) rows.push({ ...row, shard: "due#0" });

  expect(await sweepDueJobs(sweep.options, stopping.signal, unheard)).toEqual({
    dispatched: 1,
    left: 59,
    setAside: 0,
  });
  expect([sweep.sent, sweep.lines]).toEqual([['{"n":0}'], []]);
  expect(rows).toHaveLength(59);
});

describe("a job that the queue will never accept", () => {
  const failure = "InvalidMessageContents: Invalid characters found.";
  /** As many as make a page and a half of one partition, the last of them another's. */
  const crowded = (nowMs: number, count = 150) => {
    const [first, ...others] = Array.from({ length: count }, (_, n) =>
      jobAt(nowMs - count + n, n),
    ) as [OutboxRow, ...OutboxRow[]]; // safe: as many
    return [first, ...others.map((row) => ({ ...row, shard: first.shard }))];
  };
  const isLast = (text: string) => text === '{"n":149}';

  test("is set aside with the reason, and a page of such jobs blocks nothing", async () => {
    const rows: OutboxRow[] = [];
    const sweep = sweepOf(rows, { fails: (text) => !isLast(text), failure });
    rows.push(...crowded(sweep.world.nowMs));
    const [first] = rows;
    const { metrics, sums } = recordedMetrics();
    expect(await sweepDueJobs({ ...sweep.options, metrics }, undefined, unheard)).toEqual({
      dispatched: 1,
      left: 0,
      setAside: 149,
    });
    expect(sweep.sent).toEqual(['{"n":149}']);
    expect(rows).toEqual([]);
    expect(sums()).toEqual({ "keelson.dead_letters job": 149 });
    expect(sweep.lines).toHaveLength(149);
    expect(sweep.lines[0]).toEqual([
      "error",
      "job.set_aside",
      { job: "a.b.c", jobId: first?.eventId, reason: `Error: ${failure}` },
    ]);
  });

  test("counts as a delivery if it is one", async () => {
    const rows: OutboxRow[] = [];
    const sweep = sweepOf(rows, { fails: () => true, failure });
    rows.push({ ...jobAt(sweep.world.nowMs), type: deliveryJob });
    const { metrics, sums } = recordedMetrics();
    await sweepDueJobs({ ...sweep.options, metrics }, undefined, unheard);
    expect(sums()).toEqual({ "keelson.dead_letters delivery": 1 });
  });

  test("stays and is logged if it cannot be set aside, and a page of such jobs blocks nothing", async () => {
    const rows: OutboxRow[] = [];
    const sweep = sweepOf(rows, { fails: (text) => !isLast(text), failure, keepsAll: true });
    rows.push(...crowded(sweep.world.nowMs));
    expect(await sweepDueJobs(sweep.options, undefined, unheard)).toEqual({
      dispatched: 1,
      left: 149,
      setAside: 0,
    });
    expect(rows).toHaveLength(149);
    const told = {
      job: "a.b.c",
      jobId: rows[0]?.eventId,
      refusal: `Error: ${failure}`,
      reason: "Error: AccessDenied",
    };
    expect(sweep.lines[0]).toEqual(["warn", "job.set_aside_failed", told]);
  });

  test("stays after its commit, because only a sweep that has claimed the partition may set it aside", async () => {
    const rows: OutboxRow[] = [];
    const sweep = sweepOf(rows, { fails: () => true, failure });
    rows.push(jobAt(sweep.world.nowMs));
    await sendCommitted(sweep.options, [...rows]);
    expect(rows).toHaveLength(1);
    expect(sweep.lines).toEqual([
      [
        "warn",
        "job.dispatch_failed",
        { jobs: [`a.b.c ${rows[0]?.eventId}`], reason: `Error: ${failure}` },
      ],
    ]);
  });

  test("is not assumed when the queue fails for a whole page: the sweep stops, and the next one starts after it", async () => {
    const rows: OutboxRow[] = [];
    const sweep = sweepOf(rows, { fails: (text) => !isLast(text) });
    rows.push(...crowded(sweep.world.nowMs));
    expect(await sweepDueJobs(sweep.options, undefined, unheard)).toEqual({
      dispatched: 0,
      left: 100,
      setAside: 0,
    });
    expect(await sweepDueJobs(sweep.options, undefined, unheard)).toMatchObject({
      dispatched: 1,
      setAside: 0,
    });
    expect(rows).toHaveLength(149);
  });
});

test("sends the jobs of a group in the order of their rows, and none after one that stays", async () => {
  const rows = [1, 2, 3, 4].map((number) => jobAt(number, number, number === 4 ? "b" : "a"));
  const { options, sent, world } = sweepOf([...rows], { fails: (body) => body.includes('"n":2') });
  world.nowMs = 10;
  await sendCommitted(options, rows);
  expect(sent.toSorted()).toEqual(['{"n":1}', '{"n":4}']);
});

test("a group whose job is being sent holds up no other group", async () => {
  const { options, sent } = sweepOf([]);
  const { jobs, ...queues } = await options.jobs();
  const released = Promise.withResolvers<void>();
  const send: typeof jobs.send = async (body, to) => {
    if (body === '{"n":0}') await released.promise;
    return jobs.send(body, to);
  };
  const slow = { ...options, jobs: async () => ({ ...queues, jobs: { ...jobs, send } }) };
  const rows = Array.from({ length: 30 }, (_, n) => jobAt(n, n));
  const committed = sendCommitted(slow, rows);
  await new Promise((done) => setImmediate(done));
  const others = sent.length;
  released.resolve();
  await committed;
  expect([others, sent.length]).toEqual([29, 30]);
});

test("tenants take turns, so that the jobs of nine are not sent after 80 jobs of another", async () => {
  const rows: OutboxRow[] = [];
  const { options, sent, world } = sweepOf(rows);
  const many = Array.from({ length: 80 }, (_, n) => jobAt(world.nowMs - 100 + n, n));
  const few = Array.from({ length: 9 }, (_, n) => ({
    ...jobAt(world.nowMs - 10 + n, 80 + n),
    tenantId: `tenant-${n}`,
  }));
  rows.push(...[...many, ...few].map((row) => ({ ...row, shard: "due#0" })));
  await sweepDueJobs(options, undefined, unheard);
  expect(sent).toHaveLength(89);
  const first = sent.slice(0, 20).map((body) => Number(/\d+/.exec(body)));
  expect(first.filter((n) => n >= 80).toSorted()).toEqual([80, 81, 82, 83, 84, 85, 86, 87, 88]);
});

describe("a sweep sends no job of a group after one that stays", () => {
  /** Rows of one shard by their groups; `-` stands for a job without an order. */
  const shardOf = (nowMs: number, groups: readonly string[]) =>
    groups.map((group, n) => {
      const own = `${hash}${n}`;
      const row = jobAt(nowMs - groups.length + n, n, group === "-" ? own : group, own);
      return { ...row, shard: "due#0" };
    });
  const times = (count: number, ...groups: readonly string[]) =>
    Array.from({ length: count }, (_, n) => groups[n % groups.length] ?? "-");
  const numberOf = (text: string) => Number(/\d+/.exec(text));
  const swept = ({ options }: ReturnType<typeof sweepOf>) =>
    sweepDueJobs(options, undefined, unheard);

  test("on whatever page they are", async () => {
    const rows: OutboxRow[] = [];
    let failing: readonly number[] = [0];
    const sweep = sweepOf(rows, { fails: (text) => failing.includes(numberOf(text)) });
    // The job of group `a` on the first page stays, and so does the one on the second.
    rows.push(...shardOf(sweep.world.nowMs, ["a", ...times(119, "-"), "a", ...times(29, "-")]));
    expect(await swept(sweep)).toEqual({ dispatched: 148, left: 2, setAside: 0 });
    failing = [];
    await swept(sweep);
    expect(sweep.sent.slice(-2)).toEqual(['{"n":0}', '{"n":120}']);
  });

  test("in a sweep that starts behind them, which sends other groups", async () => {
    const rows: OutboxRow[] = [];
    const sweep = sweepOf(rows, { fails: (text) => numberOf(text) < 100 });
    // The fair queue is missing. Group `a` has a job before the stop, and one after it.
    rows.push(...shardOf(sweep.world.nowMs, ["a", ...times(99, "-"), "b", "a", "c", "-"]));
    expect(await swept(sweep)).toMatchObject({ dispatched: 0, left: 100 });
    expect(await swept(sweep)).toMatchObject({ dispatched: 3 });
    expect(sweep.sent.map(numberOf).toSorted()).toEqual([100, 102, 103]);
    expect(await swept(sweep)).toMatchObject({ dispatched: 0 });
    expect(rows).toHaveLength(101);
  });

  test("and in an outage, each sweep reads two pages, however many jobs wait", async () => {
    const rows: OutboxRow[] = [];
    let isOut = true;
    const sweep = sweepOf(rows, { fails: () => isOut });
    rows.push(...shardOf(sweep.world.nowMs, times(1_000, "a", "b")));
    const pages = async () => {
      const before = sweep.read.length;
      const { dispatched } = await swept(sweep);
      // One read for each of the eight shards finds out which ones have jobs.
      return { dispatched, pages: sweep.read.length - before - 8 };
    };
    expect(await pages()).toEqual({ dispatched: 0, pages: 1 });
    for (let n = 0; n < 5; n += 1) expect(await pages()).toEqual({ dispatched: 0, pages: 2 });
    isOut = false;
    // The first sweep after the outage finds out at the first row. The next one sends the rest.
    expect((await swept(sweep)).dispatched).toBeGreaterThanOrEqual(500);
    await swept(sweep);
    expect(rows).toEqual([]);
    for (const parity of [0, 1]) {
      const numbers = sweep.sent.map(numberOf).filter((n) => n % 2 === parity);
      expect(numbers).toEqual(numbers.toSorted((one, other) => one - other));
    }
  });

  test("a page of such jobs delays those behind it by one sweep", async () => {
    const rows: OutboxRow[] = [];
    const sweep = sweepOf(rows, { fails: (text) => numberOf(text) < 300 });
    rows.push(...shardOf(sweep.world.nowMs, [...times(300, "a"), ...times(20, "b", "-")]));
    for (let n = 0; n < 4; n += 1) await swept(sweep);
    expect(sweep.sent).toHaveLength(20);
    expect(rows).toHaveLength(300);
  });

  test("if too many groups stay to remember, no ordered job is sent before the next pass from the start", async () => {
    const rows: OutboxRow[] = [];
    let isOut = true;
    const sweep = sweepOf(rows, { fails: () => isOut });
    const blocked = new Set(times(10_000).map((_, n) => `g${n}`));
    rows.push(...shardOf(sweep.world.nowMs, [...times(100, "a"), "b", "-"]));
    sweep.options.stops.set("due#0", { after: "", blocked });
    await swept(sweep);
    isOut = false;
    await swept(sweep);
    expect(sweep.sent.map(numberOf)).toContain(101);
    expect(sweep.sent.map(numberOf)).not.toContain(100);
    await swept(sweep);
    expect(rows).toEqual([]);
  });
});

test("rows of one group are in one shard, in the order of their ordinals", () => {
  const job = { name: "a.b.c", tenantId: "acme", group: "g", deduplicationId: hash, text: "{}" };
  const rows = [9, 10, 0].map((ordinal) => queuedRow(5, ordinal, { ...job, jobId: `j${ordinal}` }));
  expect(new Set(rows.map(({ shard }) => shard)).size).toBe(1);
  expect(rows.toSorted((a, b) => (a.sort < b.sort ? -1 : 1)).map(({ eventId }) => eventId)).toEqual(
    ["j0", "j9", "j10"],
  );
});

describe("jobs on their way to a fair queue", () => {
  const queued = (
    nowMs: number,
    jobId: string,
    more: Partial<Parameters<typeof queuedRow>[2]> = {},
  ) =>
    queuedRow(nowMs, 0, {
      ...{ jobId, name: "a.b.c", tenantId: "acme", group: hash, deduplicationId: hash },
      ...{ text: `{"id":"${jobId}"}`, ...more },
    });

  test.each(["receive", "send"] as const)(
    "merge with %s, and leave the outbox",
    async (fairMode) => {
      const rows: OutboxRow[] = [];
      const marks = new Map<string, EqualJob>();
      const sweep = sweepOf(rows, { fairMode, marks });
      const { nowMs } = sweep.world;
      marks.set("j2", { jobId: "j1", enqueuedMs: nowMs });
      rows.push(queued(nowMs, "j1"), queued(nowMs, "j2"));
      expect(await sweepDueJobs(sweep.options, undefined, unheard)).toMatchObject({
        dispatched: 2,
      });
      expect(rows).toEqual([]);
      expect(sweep.sent).toEqual(['{"id":"j1"}']);
      expect(sweep.groups).toEqual([fairMode === "send" ? "acme" : hash]);
      expect(sweep.lines).toEqual([
        ["info", "job.merged", { job: "a.b.c", mergedId: "j2", into: "j1" }],
      ]);
    },
  );

  test("do not merge if they are due later, have an order, or are deliveries", async () => {
    const rows: OutboxRow[] = [];
    const sweep = sweepOf(rows, { fairMode: "send" });
    const { nowMs } = sweep.world;
    rows.push(jobAt(nowMs, 1, hash), queued(nowMs, "ordered", { group: `${hash}2` }));
    rows.push(queued(nowMs, "delivery", { name: deliveryJob }));
    await sendCommitted(sweep.options, rows.splice(0));
    expect(sweep.sent).toHaveLength(3);
    expect(sweep.groups.toSorted()).toEqual(["acme", "acme", `${hash}2`]);
    expect(sweep.marked).toEqual([]);
  });

  describe("do not merge with one that the queue has refused", () => {
    /** Marks in memory, by job. A job with `refused` in its text fails in this way. */
    const sweepMarking = (failure: string) => {
      const rows: OutboxRow[] = [];
      const fails = (text: string) => text.includes("refused");
      const sweep = sweepOf(rows, { fairMode: "send", fails, failure });
      const marks = new Map<string, EqualJob>();
      const store: EqualJobStore = {
        mark: async ({ sort }, job) => {
          const mark = marks.get(sort) ?? job;
          marks.set(sort, mark);
          return mark.jobId === job.jobId ? undefined : mark;
        },
        unmark: async ({ sort }, jobId) =>
          void (marks.get(sort)?.jobId === jobId && marks.delete(sort)),
      };
      const options = { ...sweep.options, equalJobs: async () => store };
      const send = (...jobs: OutboxRow[]) => sendCommitted(options, jobs);
      const sweepAll = () => sweepDueJobs(options, undefined, unheard);
      const first = queued(sweep.world.nowMs, "refused");
      return { ...sweep, rows, send, sweepAll, first, store };
    };

    test("for good, and that a sweep has set aside", async () => {
      const { rows, first, send, sweepAll, sent, world } = sweepMarking("InvalidMessageContents");
      rows.push(first);
      expect(await sweepAll()).toMatchObject({ setAside: 1 });
      await send(queued(world.nowMs, "j2"));
      await send(queued(world.nowMs, "j3"));
      expect(sent).toEqual(['{"id":"j2"}']);
    });

    test("for good, and that a sweep has yet to set aside: it merges with them", async () => {
      const { rows, first, send, sweepAll, ...seen } = sweepMarking("InvalidMessageContents");
      const { sent, lines, world } = seen;
      rows.push(first);
      await send(first);
      await send(queued(world.nowMs, "j2"));
      expect(sent).toEqual(['{"id":"j2"}']);
      expect(await sweepAll()).toMatchObject({ dispatched: 1, setAside: 0 });
      expect(lines.at(-1)).toMatchObject([
        "info",
        "job.merged",
        { mergedId: "refused", into: "j2" },
      ]);
    });

    test("for good, which is set aside although its mark cannot be deleted", async () => {
      const { rows, first, sweepAll, store } = sweepMarking("InvalidMessageContents");
      store.unmark = () => Promise.reject(new Error("AccessDenied"));
      rows.push(first);
      expect(await sweepAll()).toMatchObject({ setAside: 1 });
    });

    test("unless the queue may take it later", async () => {
      const { first, send, sent, world } = sweepMarking("connect ECONNREFUSED");
      await send(first);
      await send(queued(world.nowMs, "j2"));
      expect(sent).toEqual([]);
    });
  });

  test("stay in the outbox if the mark cannot be written", async () => {
    const rows: OutboxRow[] = [];
    const sweep = sweepOf(rows, { fairMode: "send" });
    rows.push(queued(sweep.world.nowMs, "j1"));
    const failing = { ...sweep.options, equalJobs: () => Promise.reject(new Error("no table")) };
    expect(await sweepDueJobs(failing, undefined, unheard)).toMatchObject({ left: 1 });
    expect([rows.length, sweep.sent]).toEqual([1, []]);
  });
});
