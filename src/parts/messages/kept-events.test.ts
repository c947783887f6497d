import { expect, test } from "vitest";
import { type KeptEventReader, keptRows, type Page } from "./kept-events.ts";
import { timeText } from "./outbox-store.ts";

const stream = { tenantId: "acme", type: "file.created" };

/** A reader that gives at most two of what there is. */
function paged<Item>(
  all: readonly Item[],
  placeOf: (item: Item) => string,
  from: string,
  until: string,
): Page<Item> {
  const found = all.filter((item) => placeOf(item) >= from && placeOf(item) <= until);
  const items = found.slice(0, 2);
  const end = items.at(-1);
  return { items, last: found.length > 2 && end !== undefined ? placeOf(end) : undefined };
}

function readerOf(times: readonly number[]) {
  const rows = times.map((atMs) => ({
    sort: `${timeText(atMs)}#e`,
    atMs,
    text: "",
    expiresAt: undefined,
  }));
  const days = [...new Set(times.map((atMs) => new Date(atMs).toISOString().slice(0, 10)))];
  const calls: string[] = [];
  const reader: KeptEventReader = {
    days: async (_stream, from, until) => {
      calls.push("days");
      return paged(days, (day) => day, from, until);
    },
    rows: async (_stream, day, from, until) => {
      calls.push(day);
      const own = rows.filter(({ atMs }) => new Date(atMs).toISOString().startsWith(day));
      return paged(own, ({ sort }) => sort, from, until);
    },
  };
  return { reader, calls };
}

const day = (n: number) => Date.UTC(2026, 0, n);

test("returns rows in order, across pages of days and of rows", async () => {
  const times = [day(1), day(1) + 1, day(1) + 2, day(3), day(9), day(20)];
  const { reader, calls } = readerOf(times);
  const found: number[] = [];
  for await (const { atMs } of keptRows(reader, stream, {
    from: timeText(0),
    untilMs: day(31),
    nowMs: 0,
  }))
    found.push(atMs);
  expect(found).toEqual(times);
  expect(calls).toEqual([
    "days",
    "2026-01-01",
    "2026-01-01",
    "2026-01-03",
    "days",
    "2026-01-09",
    "2026-01-20",
  ]);
});

test("reads nothing after the signal has aborted", async () => {
  const { reader, calls } = readerOf([day(1)]);
  const rows = keptRows(reader, stream, {
    from: timeText(0),
    untilMs: day(31),
    nowMs: 0,
    signal: AbortSignal.abort(new Error("gone")),
  });
  await expect(rows.next()).rejects.toThrow("gone");
  expect(calls).toEqual([]);
});
