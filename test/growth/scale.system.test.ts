// The formulas of docs/scale.md, against as many processes as a test can have.
import { readFileSync } from "node:fs";
import { PutParameterCommand, SSMClient } from "@aws-sdk/client-ssm";
import { afterAll, beforeAll, expect, test } from "vitest";
import { configTable, onceTable, outboxTable } from "../../src/app/handlers/table.ts";
import { openParameters } from "../../src/aws/clients/ssm.ts";
import { eventBridgeBus } from "../../src/aws/messaging/event-bus.ts";
import { dynamoClaimStore } from "../../src/aws/stores/claim-store.ts";
import { dynamoConfigRows } from "../../src/aws/stores/config-rows.ts";
import { dynamoOutbox } from "../../src/aws/stores/outbox-store.ts";
import { dynamoRates } from "../../src/aws/stores/rate-store.ts";
import { dynamoSlots, openSlots } from "../../src/aws/stores/slot-store.ts";
import { transact } from "../../src/aws/stores/table.ts";
import { ensureTables } from "../../src/aws/tables/tables.ts";
import { createServerLogger } from "../../src/base/log/server-logger.ts";
import { type EmbeddedStack, startEmbeddedStack } from "../../src/embedded/stack/index.ts";
import { createTenantConfig } from "../../src/index.ts";
import { createCachedRows, groupKeys } from "../../src/parts/config/cache/cached-rows.ts";
import { RateCounter } from "../../src/parts/limits/rate-counter.ts";
import { type DueJobsOptions, sweepDueJobs } from "../../src/parts/messages/due-jobs.ts";
import { createOutbox, type EventBus } from "../../src/parts/messages/outbox.ts";
import { claimKey } from "../../src/parts/once/claim.ts";
import { createClaims } from "../../src/parts/once/claims.ts";
import { derivedId } from "../../src/parts/once/derived-id.ts";
import { countedDatabase } from "./counted-database.ts";
import { createManualTime } from "./manual-time.ts";
import {
  claimCalls,
  configReads,
  leaseCalls,
  outboxCalls,
  parameterCalls,
  scaleTable,
  slotUnits,
  sweepCalls,
} from "./scale.ts";

const fleets = [1, 5, 20];
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);

let stack: EmbeddedStack;
let store: ReturnType<typeof countedDatabase>;

beforeAll(async () => {
  stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  store = countedDatabase(stack.endpoint);
  await ensureTables(
    store.database,
    [
      { ...configTable, tableName: "rows" },
      { ...onceTable, tableName: "claims" },
      { ...outboxTable, tableName: "outbox" },
    ],
    "create",
  );
});
afterAll(async () => {
  store.database.destroy();
  await stack.close();
});

test("the table of the page has the results of the formulas", () => {
  const page = readFileSync(new URL("../../docs/scale.md", import.meta.url), "utf8");

  expect(page).toContain(`\n${scaleTable()}\n`);
});

test.each(fleets)(
  "%i processes refresh configuration as often as the formula says",
  async (processes) => {
    const { clock, advance } = createManualTime();
    const [features, owners, keys] = [["one", "two"], ["acme", "globex", "umbrella"], 5];
    const { definition } = createTenantConfig("number", { default: 1 });
    const registered = features.flatMap((feature) =>
      numbers(keys).map((n) => ({
        id: `${feature}:config:key-${n}`,
        feature,
        name: `${n}`,
        definition,
      })),
    );
    const fleet = numbers(processes).map(() =>
      createCachedRows({
        reader: dynamoConfigRows(store.database, "rows"),
        keyGroups: groupKeys(registered),
        clock,
        schedule: { soon: setImmediate, later: () => () => undefined, random: () => 0.5 },
        ...{ ttlMs: 5_000, maxStaleMs: 30_000, maxTenants: 10 },
      }),
    );
    const readAll = async () => {
      // One after the other, because rows of one owner that are due at the same moment share a call.
      for (const feature of features)
        for (const tenantId of owners) {
          for (const rows of fleet)
            await rows
              .view({ tenantId, userId: undefined }, () => {})
              .rowsOf(`${feature}:config:key-0`, "tenant");
          await store.quiet();
        }
    };
    await readAll();
    advance(5_000);
    await readAll(); // from here on, refreshes run in the background
    const counted = await store.counted(async () => {
      for (let elapsedMs = 0; elapsedMs < 19_000; elapsedMs += 950) {
        advance(950);
        await readAll();
      }
    });
    const expected = configReads({ processes, features: 2, owners: 3 });

    expect(counted.calls).toEqual({ Query: Math.round(19 * expected.all) });
    expect(counted.units).toBe(Math.round(19 * expected.all) / 2);
  },
);

test.each(fleets)(
  "duplicates in %i processes call a hot claim as often as the formula says",
  async (processes) => {
    const time = createManualTime();
    const runMs = 3_000; // long enough for the longest pause
    const claimStore = dynamoClaimStore(store.database, "claims");
    const key = claimKey(["scale"], `of ${processes}`);
    let ended = 0;
    const run = async () => {
      const claims = createClaims({ store: claimStore, ...time });
      const taken = await claims.take(key, { waitMs: 10_000, stop: [] });
      if (taken.kind === "taken") {
        await time.schedule.wait(runMs, []);
        await taken.claim.complete(undefined);
      }
      ended += 1;
      return taken.kind;
    };
    const counted = await store.counted(async () => {
      const all = Promise.all(numbers(processes).map(run));
      await time.pass(() => processes - ended);
      expect((await all).toSorted()).toEqual([
        ...numbers(processes - 1).map(() => "done"),
        "taken",
      ]);
    });
    const { writes, reads } = claimCalls({ processes, runMs });

    expect(counted.calls).toEqual({ PutItem: writes, ...(reads > 0 && { GetItem: reads }) });
  },
);

test.each(fleets)(
  "%i processes publish with as many calls as the formula says",
  async (processes) => {
    const events = 20;
    let putEvents = 0;
    const send = async () => {
      putEvents += 1;
      return { Entries: [{ EventId: "e" }] };
    };
    const bus = eventBridgeBus({ PutEventsCommand: class {} as never }, { send } as never, {
      busName: "bus",
      source: "keelson",
      pause: async () => {},
    });
    const { outbox, rows } = outboxOf(bus);
    const counted = await store.counted(async () => {
      for (const n of numbers(processes * events)) {
        const row = outbox.row({ eventId: derivedId("event", processes, n), type: "x" }, "{}");
        await transact(store.database, rows.items(row) as never);
        await outbox.dispatch([row]);
      }
    });
    const expected = outboxCalls({ processes, events });

    expect(counted.calls).toEqual({
      TransactWriteItems: expected.commits,
      DeleteItem: expected.deletes,
    });
    expect(putEvents).toBe(expected.putEvents);
  },
);

test("no shard gets more than a tenth above its part of the events", () => {
  const { outbox } = outboxOf(downBus);
  const of = numbers(8_000).map((n) =>
    outbox.row({ eventId: derivedId("event", n), type: "x" }, ""),
  );
  const shards = [...Map.groupBy(of, ({ shard }) => shard).values()].map(({ length }) => length);

  expect(shards).toHaveLength(8);
  expect(Math.max(...shards)).toBeLessThan(1_100);
});

test.each(fleets)(
  "sweeps of %i processes make as many calls as the formula says",
  async (processes) => {
    const sweepAll = async () => {
      for (const _ of numbers(processes)) {
        const { outbox } = outboxOf(downBus);
        await outbox.sweep({ graceMs: 0 });
      }
    };
    const idle = await store.counted(sweepAll);
    const { outbox, rows } = outboxOf(downBus);
    const left = numbers(80).map((n) =>
      outbox.row({ eventId: derivedId("left", processes, n), type: "x" }, "{}"),
    );
    for (const row of left) await transact(store.database, rows.items(row) as never);
    const outage = await store.counted(sweepAll);
    for (const row of left) await rows.remove(row);
    const full = new Set(left.map(({ shard }) => shard)).size;
    const expected = sweepCalls({ processes, full });

    expect(idle.calls).toEqual({ Query: sweepCalls({ processes }).queries });
    expect(full).toBe(8);
    expect(outage.calls).toEqual({
      Query: expected.queries,
      PutItem: expected.claims / 2,
      DeleteItem: expected.claims / 2,
    });
  },
);

test.each(fleets)(
  "%i processes lease tokens with as many calls as the formula says",
  async (processes) => {
    const { clock } = createManualTime();
    const requests = 300;
    const callsOf = async (number: number) => {
      const limit = { id: `${number} of ${processes}`, window: "minute" } as const;
      const fleet = numbers(processes).map(
        () => new RateCounter({ limit, store: dynamoRates(store.database, "claims"), clock }),
      );
      const counted = await store.counted(async () => {
        for (const n of numbers(requests))
          await fleet[n % processes]?.take({ text: "tenant acme" }, number, 1);
      });
      return counted.calls["UpdateItem"];
    };
    const expected = leaseCalls({ processes, requests });

    expect(await callsOf(20 * requests)).toBe(expected);
    expect(await callsOf(requests)).toBeLessThanOrEqual(expected + 100);
  },
);

test.each([10, 50, 200])(
  "the start and the end of a run with %i slots cost as many units as the formula says",
  async (slots) => {
    const { clock } = createManualTime();
    const { take, leave } = openSlots(store.database, "claims", {
      clock,
      log: { warn: () => undefined },
    });
    const place = { handler: `scans.file.scan-of-${slots}`, limit: "total" } as const;
    const run = async () => {
      const key = claimKey(["job", place.handler], crypto.randomUUID());
      const owner = crypto.randomUUID();
      expect(await take(place, slots, { owner, key })).toBe(true);
      return owner;
    };
    for (const _ of numbers(slots - 1)) await run();
    let owner = "";
    const read = await store.counted(() => dynamoSlots(store.database, "claims").read(place));
    const counted = await store.counted(async () => {
      owner = await run();
    });
    const ended = await store.counted(() => leave(place, owner));
    const units = counted.units - read.units + ended.units;
    const expected = slotUnits({ slots });

    expect(counted.calls).toEqual({ GetItem: 1, UpdateItem: 1 });
    expect(units).toBeGreaterThan(0.9 * expected);
    expect(units).toBeLessThanOrEqual(expected + 2);
  },
);

test.each([
  [0, false],
  [10, true],
  [25, true],
])(
  "a start with %i overrides calls SSM as often as the formula says",
  async (overrides, keyRing) => {
    const given = {
      endpoint: stack.endpoint,
      region: "us-east-1",
      credentials: { accessKeyId: "x", secretAccessKey: "x" },
    };
    const path = `/scale-${overrides}`;
    const client = new SSMClient(given);
    for (const n of numbers(overrides))
      await client.send(
        new PutParameterCommand({ Name: `${path}/${n}`, Value: "1", Type: "String" }),
      );
    client.destroy();
    const parameters = await openParameters(given);
    let calls = 0;
    parameters.middlewareStack.add(
      (next) => (sent) => {
        calls += 1;
        return next(sent);
      },
      { step: "initialize" },
    );
    expect(await parameters.read(path)).toHaveLength(overrides);
    if (keyRing) await parameters.get("/ring");
    parameters.close();

    expect(calls).toBe(parameterCalls({ processes: 1, overrides, keyRing }));
  },
);

const silent = createServerLogger({ env: {}, environment: "test", write: () => {} });

const downBus: EventBus = {
  name: "bus",
  put: async (events) => events.map(() => ({ reason: "the bus is down", isFinal: false })),
};

function outboxOf(bus: EventBus) {
  const { clock } = createManualTime();
  const rows = dynamoOutbox(store.database, "outbox");
  const claims = createClaims({ store: dynamoClaimStore(store.database, "claims"), clock });
  const none = () => Promise.reject(new Error("no job is due"));
  const parts = { store: rows, claims, clock, log: silent, stops: new Map() };
  const due: DueJobsOptions = {
    ...parts,
    due: { begin: none },
    jobs: none,
    equalJobs: none,
  };
  const outbox = createOutbox({
    ...parts,
    bus: async () => bus,
    sweepDue: (signal, reports) => sweepDueJobs(due, signal, reports),
  });
  return { outbox, rows };
}
