import fc from "fast-check";
import { expect, test } from "vitest";
import type { ClaimKey } from "../once/claim.ts";
import { type EqualJob, type EqualJobStore, mergedWith, mergeMs, unmark } from "./equal-jobs.ts";

const start = 1_700_000_000_000;

/** Marks in memory, under the condition of the table. */
function marksInMemory() {
  const marks = new Map<string, EqualJob>();
  const keys: ClaimKey[] = [];
  const store: EqualJobStore = {
    mark: async (key, job) => {
      keys.push(key);
      const text = `${key.partition} ${key.sort}`;
      const found = marks.get(text);
      const isBlocked =
        found !== undefined &&
        found.jobId !== job.jobId &&
        found.enqueuedMs > job.enqueuedMs - mergeMs;
      if (isBlocked) return found;
      marks.set(text, job);
      return undefined;
    },
    unmark: async ({ partition, sort }, jobId) => {
      const text = `${partition} ${sort}`;
      if (marks.get(text)?.jobId === jobId) marks.delete(text);
    },
  };
  return { store, keys };
}

const jobAt = (ms: number, jobId: string, deduplicationId = "equal") => ({
  ...{ jobId, enqueuedMs: start + ms, deduplicationId, tenantId: "acme" },
});

test("the first of equal jobs is sent, and equal jobs of the next 5 minutes merge with it", async () => {
  const { store, keys } = marksInMemory();
  expect(await mergedWith(store, jobAt(0, "j1"))).toBeUndefined();
  expect(await mergedWith(store, jobAt(1, "j2"))).toBe("j1");
  expect(await mergedWith(store, jobAt(mergeMs - 1, "j3"))).toBe("j1");
  expect(await mergedWith(store, jobAt(0, "other", "unequal"))).toBeUndefined();
  expect(keys[0]).toMatchObject({ sort: "dedup:equal", tenantId: "acme" });
});

test("a job 5 minutes after the first is another, with which later ones merge", async () => {
  const { store } = marksInMemory();
  await mergedWith(store, jobAt(0, "j1"));
  await mergedWith(store, jobAt(mergeMs - 1, "j2"));
  expect(await mergedWith(store, jobAt(mergeMs, "j3"))).toBeUndefined();
  expect(await mergedWith(store, jobAt(2 * mergeMs - 1, "j4"))).toBe("j3");
});

test("a job that is sent again merges with no other", async () => {
  const { store } = marksInMemory();
  await mergedWith(store, jobAt(0, "j1"));
  expect(await mergedWith(store, jobAt(0, "j1"))).toBeUndefined();
});

test("a job merges with none that is not sent", async () => {
  const { store } = marksInMemory();
  await mergedWith(store, jobAt(0, "j1"));
  expect(await mergedWith(store, jobAt(1, "j2"))).toBe("j1");
  await unmark(store, jobAt(1, "j2"));
  expect(await mergedWith(store, jobAt(2, "j3"))).toBe("j1");
  await unmark(store, jobAt(0, "j1"));
  expect(await mergedWith(store, jobAt(3, "j4"))).toBeUndefined();
});

test("a job that waited in an outage is sent, unless an equal one followed within 5 minutes", async () => {
  const { store } = marksInMemory();
  await mergedWith(store, jobAt(mergeMs, "j2"));
  expect(await mergedWith(store, jobAt(0, "j0"))).toBeUndefined();
  expect(await mergedWith(store, jobAt(1, "j1"))).toBe("j2");
});

test("jobs that are sent in the order of their times are one for each 5 minutes", async () => {
  const gaps = fc.array(fc.integer({ min: 0, max: 2 * mergeMs }), { minLength: 1, maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(gaps, async (waits) => {
      const { store } = marksInMemory();
      let [ms, firstMs] = [0, Number.NEGATIVE_INFINITY];
      for (const [index, wait] of waits.entries()) {
        ms += wait;
        const isFirst = ms - firstMs >= mergeMs;
        const merged = await mergedWith(store, jobAt(ms, `j${index}`));
        expect(merged === undefined).toBe(isFirst);
        if (isFirst) firstMs = ms;
      }
    }),
  );
});
