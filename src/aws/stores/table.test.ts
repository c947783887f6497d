import { expect, test } from "vitest";
import type { Database } from "../../base/types/database.ts";
import { dynamoLines } from "./line-store.ts";
import { dynamoProjections } from "./projection-store.ts";
import { dynamoQuotas } from "./quota-store.ts";
import { dynamoRates } from "./rate-store.ts";
import { dynamoSchedules } from "./schedule-store.ts";
import { dynamoSlots } from "./slot-store.ts";
import { dynamoSteps } from "./step-store.ts";

/** A table in which every read finds this row. */
const databaseOf = (row: object) => ({ send: async () => ({ Item: row }) }) as unknown as Database; // safe: the stores only send
const key = { partition: "p", sort: "s" };
const quota = { tenantId: "acme", quota: "files.storage", period: { id: "2026", endsAtMs: 5 } };
const rate = { limit: { id: "files requests", window: "hour" }, text: "acme", startMs: 0 } as const;
const slots = { handler: "files.file.scan", limit: "total" } as const;

const readers: Readonly<Record<string, (row: object) => Promise<unknown>>> = {
  quota: (row) => dynamoQuotas(databaseOf(row), "once").read(quota),
  rate: (row) => dynamoRates(databaseOf(row), "once").read(rate),
  line: (row) => dynamoLines(databaseOf(row), "once").read("g"),
  slots: (row) => dynamoSlots(databaseOf(row), "once").read(slots),
  schedule: (row) => dynamoSchedules(databaseOf(row), "once").read(key),
  projection: (row) =>
    dynamoProjections(databaseOf(row), "kept", { now: () => 0 }).active("p", "acme"),
};
const line = { first: 1, next: 2, firstBy: 3, turn: 4, dueMs: 5, version: 6 };

test.each([
  ["quota", { used: "many" }, 'the usage of the quota files.storage of "acme" is "many"'],
  ["rate", { taken: [] }, "the rate limit files requests is malformed"],
  ["line", { ...line, turn: undefined }, 'the row "a" "b" cannot be read: turn is undefined'],
  ["slots", {}, "it has no holders"],
  ["slots", { holders: { o1: null } }, 'the holder "o1" has no claim'],
  ["slots", { holders: { o1: { pk: "p", sk: 5 } } }, 'the holder "o1" has no claim'],
  ["schedule", { lastMs: "today" }, 'lastMs is "today"'],
  ["schedule", { lastMs: 1, begunMs: null }, "begunMs is null"],
  ["projection", { version: true, revision: "r" }, "version is true"],
])(
  "a row of %s that was changed by hand to %j is an error that names it",
  async (name, row, problem) => {
    await expect(readers[name]?.({ pk: "a", sk: "b", ...row })).rejects.toThrow(problem);
  },
);

test("numbers that JavaScript cannot hold exactly are read as the nearest ones", async () => {
  const large = 2n ** 60n;
  expect(await readers["quota"]?.({ used: large })).toBe(2 ** 60);
  expect(await readers["schedule"]?.({ lastMs: large, begunMs: 5 })).toEqual({
    lastMs: 2 ** 60,
    begun: { atMs: 5, attempts: 0, retryMs: 0 },
  });
  expect(await readers["schedule"]?.({ begunMs: undefined, lastMs: 7 })).toEqual({ lastMs: 7 });
});

test("a step whose expiry is not a number never expires", async () => {
  const steps = (expiration: unknown) =>
    dynamoSteps(databaseOf({ status: "STARTED", owner: "o", expiration }), "once").read(key);
  expect((await steps(2n ** 60n))?.expiresAt).toBe(2 ** 60);
  expect((await steps("5"))?.expiresAt).toBeNaN();
});

test("a scan tells, behind each page, how many rows it has read", async () => {
  const row = { pk: "step:a", type: "files.stored" };
  const pages = [
    { Items: [row], ScannedCount: 900, LastEvaluatedKey: {} },
    { Items: [row, row], LastEvaluatedKey: {} },
    { Items: [], ScannedCount: 40 },
  ];
  let sent = 0;
  const database = { send: async () => pages[sent++ % 3] } as unknown as Database; // safe: the stores only send
  const told = async (list: (onPage?: (scanned: number) => void) => AsyncIterable<unknown>) => {
    const seen: unknown[] = [];
    for await (const _row of list((scanned) => seen.push(scanned))) seen.push("row");
    return seen;
  };
  const all = ["row", 900, "row", "row", 900, 940];
  expect(await told(dynamoSteps(database, "once").list)).toEqual(all);
  expect(await told((onPage) => dynamoRates(database, "once").list(undefined, onPage))).toEqual(
    all,
  );
  expect(await told((onPage) => dynamoQuotas(database, "once").list(undefined, onPage))).toEqual(
    all,
  );
  const projections = dynamoProjections(database, "kept", { now: () => 0 });
  expect(await told((onPage) => projections.firstEvents([row.type], undefined, onPage))).toEqual(
    all,
  );
});
