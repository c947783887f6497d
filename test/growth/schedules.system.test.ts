// Growth of the calls of a process with the number of its schedules.
import { DeleteItemCommand, ScanCommand } from "@aws-sdk/client-dynamodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { defineFeature } from "../../src/app/features/feature.ts";
import { onceTable } from "../../src/app/handlers/table.ts";
import { createSchedules } from "../../src/app/schedules/schedules.ts";
import { buildServer, serverInternals } from "../../src/app/server/server.ts";
import { dynamoSchedules } from "../../src/aws/stores/schedule-store.ts";
import { dynamoTenants } from "../../src/aws/stores/tenant-store.ts";
import { ensureTables } from "../../src/aws/tables/tables.ts";
import { lazy } from "../../src/base/process/lazy.ts";
import { type EmbeddedStack, startEmbeddedStack } from "../../src/embedded/stack/index.ts";
import { countedDatabase } from "./counted-database.ts";

let stack: EmbeddedStack;
let store: ReturnType<typeof countedDatabase>;

beforeAll(async () => {
  stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  store = countedDatabase(stack.endpoint);
  await ensureTables(store.database, [{ ...onceTable, tableName: "once" }], "create");
});
afterAll(async () => {
  store.database.destroy();
  await stack.close();
});

const [minute, hour] = [60_000, 3_600_000];

/** Opens `count` schedules at full hours, which another process runs. */
async function opened(
  count: number,
  name: string,
  clock: { now(): number },
  own: { readonly for?: "tenants" } = {},
) {
  const unused = () => Promise.reject(new Error("not used"));
  const feature = defineFeature(name, (r) => {
    for (let index = 0; index < count; index += 1)
      r.schedule(`job.s${index}`, { cron: "0 * * * *", ...own, handler: () => undefined });
  });
  const schedules = await createSchedules(
    {
      server: serverInternals(buildServer({ tenants: true, features: [feature] })),
      clock,
      log: { warn: (line: string) => expect.unreachable(line), error: () => undefined },
      metrics: undefined,
      messages: lazy(unused),
    },
    {
      schedules: lazy(async () => dynamoSchedules(store.database, "once")),
      tenants: lazy(async () => dynamoTenants(store.database, "once")),
      messaging: lazy(unused),
    },
    async () => ({ kind: "handed-back", afterMs: minute }),
  );
  return async () =>
    (await Promise.all(schedules.map((one) => one.look()))).map(({ kind }) => kind);
}

/** Counts the calls of a process with `count` schedules, from one hour to the next. */
async function callsOf(count: number, name: string, own?: { readonly for: "tenants" }) {
  let nowMs = 1_000 * hour + minute;
  const look = await opened(count, name, { now: () => nowMs }, own);
  await look();
  await look();
  const between = await store.counted(async () => {
    for (let checks = 0; checks < 30; checks += 1) {
      nowMs += minute;
      expect(new Set(await look())).toEqual(new Set(["idle"]));
    }
  });
  nowMs = 1_001 * hour;
  return { between, due: await store.counted(look) };
}

test("a time that is due counts, although its record was deleted since the process read it", async () => {
  let nowMs = 1_000 * hour + minute;
  const look = await opened(1, "deleted", { now: () => nowMs });
  await look();
  expect(await look()).toEqual(["idle"]);
  const TableName = "once";
  const { Items = [] } = await store.database.send(new ScanCommand({ TableName }));
  for (const { pk, sk } of Items)
    await store.database.send(new DeleteItemCommand({ TableName, Key: { pk, sk } as never })); // safe: rows have a key
  expect(Items).not.toEqual([]);
  nowMs = 1_001 * hour;

  expect(await look()).toEqual(["elsewhere"]);
});

test.each([3, 100])(
  "%i schedules are read when a time is due, and never in between",
  async (count) => {
    expect(await callsOf(count, `grown-${count}`)).toEqual({
      between: { calls: {}, units: 0 },
      due: { calls: { GetItem: count }, units: count },
    });
  },
);

test.each([3, 100])(
  "%i schedules for tenants share one read of the time zones a minute",
  async (count) => {
    const tenants = dynamoTenants(store.database, "once");
    const zones = ["Europe/Berlin", "UTC"];
    for (const timeZone of zones)
      await tenants.add({ tenantId: `${timeZone}-${count}`, timeZone, createdMs: hour });
    expect(await callsOf(count, `tenants-${count}`, { for: "tenants" })).toEqual({
      between: { calls: { Query: 30 }, units: 30 },
      due: {
        calls: { Query: 1, GetItem: zones.length * count },
        units: 1 + zones.length * count,
      },
    });
  },
);
