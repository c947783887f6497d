import { z } from "zod";
import { eventBridgeBus } from "../../src/aws/messaging/event-bus.ts";
import { dynamoClaimStore } from "../../src/aws/stores/claim-store.ts";
import { dynamoConfigRows } from "../../src/aws/stores/config-rows.ts";
import { dynamoConfigStore } from "../../src/aws/stores/config-store.ts";
import { dynamoOutbox } from "../../src/aws/stores/outbox-store.ts";
import { transact } from "../../src/aws/stores/table.ts";
import { createServerLogger } from "../../src/base/log/server-logger.ts";
import { systemClock } from "../../src/base/process/clock.ts";
import { buildServer, createUserConfig, defineFeature } from "../../src/index.ts";
import { createCachedRows, groupKeys } from "../../src/parts/config/cache/cached-rows.ts";
import { historyPartition, tenantPartition } from "../../src/parts/config/read/rows.ts";
import { createOutbox, type EventBus } from "../../src/parts/messages/outbox.ts";
import { claimKey } from "../../src/parts/once/claim.ts";
import { createClaims } from "../../src/parts/once/claims.ts";
import { derivedId } from "../../src/parts/once/derived-id.ts";
import { createOnce } from "../../src/parts/once/once.ts";
import { startTestApp } from "../../src/tools/testing/index.ts";
import type { CountedCalls, countedDatabase } from "../../test/growth/counted-database.ts";
import { type Curve, numbers, timeOf } from "./curve.ts";

type Store = ReturnType<typeof countedDatabase>;

const log = createServerLogger({ env: {}, environment: "test", write: () => {} });

/** Curves of calls, against the tables of the embedded stack. */
export function callCurves(store: Store): readonly Curve[] {
  return [
    firstRead(store, "first-read-calls", totalOf),
    firstRead(store, "first-read-units", ({ units }) => units),
    history(store),
    outboxCalls(store),
    putEvents,
    duplicates,
    consumers,
  ];
}

function totalOf({ calls }: CountedCalls): number {
  return Object.values(calls).reduce((sum, count) => sum + count, 0);
}

function firstRead(store: Store, id: string, figureOf: (counted: CountedCalls) => number): Curve {
  const unit = id === "first-read-units" ? "units" : "calls";
  return {
    ...{ id, unit, theory: "flat", sizes: [10, 100, 1_000, 10_000] },
    at: (size) => async () => {
      const { definition } = createUserConfig("number", { default: 1 });
      const ids = numbers(size).map((n) => `many:config:key-${n}`);
      const rows = createCachedRows({
        reader: dynamoConfigRows(store.database, "growth-rows"),
        keyGroups: groupKeys(
          ids.map((key) => ({ id: key, feature: "many", name: key, definition })),
        ),
        ...{ ttlMs: 5_000, maxStaleMs: 5_000, maxTenants: 10 },
      });
      const view = rows.view({ tenantId: "acme", userId: "ann" }, () => {});
      return figureOf(await store.counted(async () => view.rowsOf("many:config:key-0", "user")));
    },
  };
}

function history(store: Store): Curve {
  return {
    ...{ id: "history", unit: "units", theory: "flat", sizes: [100, 300, 1_000] },
    at: async (size) => {
      const address = { partition: tenantPartition(`acme-${size}`), key: "many:config:key" };
      for (const n of numbers(size)) {
        const sk = `${address.key}#${String(n + 1).padStart(16, "0")}`;
        const Item = { pk: historyPartition(address.partition), sk, version: n + 1, value: n };
        await transact(store.database, [{ Put: { TableName: "growth-rows", Item } }]);
      }
      const config = dynamoConfigStore(store.database, "growth-rows");
      const read = () => config.history(address, { before: undefined, limit: 51 });
      return async () => (await store.counted(read)).units;
    },
  };
}

/** Calls of a sweep for each event, without the reads of empty shards. */
function outboxCalls(store: Store): Curve {
  return {
    ...{ id: "outbox-calls", unit: "calls", theory: "flat", sizes: [200, 800, 3_200] },
    at: (size) => async () => {
      const rows = dynamoOutbox(store.database, "growth-outbox");
      const claims = createClaims({
        store: dynamoClaimStore(store.database, "growth-claims"),
        clock: systemClock,
      });
      let puts = 0;
      const bus = busOf(async () => {
        puts += 1;
      });
      const outbox = createOutbox({
        ...{ store: rows, claims, clock: systemClock, log, stops: new Map() },
        bus: async () => bus,
      });
      const items = numbers(size).flatMap((n) =>
        rows.items(outbox.row({ eventId: derivedId(size, n), type: "x" }, "{}")),
      );
      while (items.length > 0) await transact(store.database, items.splice(0, 50) as never); // safe: the items of rows
      const counted = await store.counted(() => outbox.sweep({ graceMs: 0 }));
      return (totalOf(counted) + puts) / size;
    },
  };
}

/** A bus whose calls take as long as `wait`. */
function busOf(wait: () => Promise<void>): EventBus {
  const send = async ({ Entries }: { readonly Entries: readonly unknown[] }) => {
    await wait();
    return { Entries: Entries.map(() => ({ EventId: "e" })) };
  };
  class PutEventsCommand {
    readonly Entries: readonly unknown[];
    constructor({ Entries }: { readonly Entries: readonly unknown[] }) {
      this.Entries = Entries;
    }
  }
  // Safe casts: the bus calls nothing else of the SDK.
  return eventBridgeBus({ PutEventsCommand: PutEventsCommand as never }, { send } as never, {
    ...{ busName: "bus", source: "keelson", pause: async () => {} },
  });
}

/** Rounds of calls one after another. A call takes one turn of the event loop. */
const putEvents: Curve = {
  ...{ id: "put-events", unit: "rounds", theory: "linear", sizes: [100, 400, 1_600] },
  at: (size) => async () => {
    let rounds = 0;
    let turn: Promise<void> | undefined;
    const bus = busOf(() => {
      turn ??= new Promise((done) => {
        rounds += 1;
        setImmediate(() => {
          turn = undefined;
          done();
        });
      });
      return turn;
    });
    await bus.put(numbers(size).map((n) => ({ type: "x", text: `{"n":${n}}` })));
    return rounds;
  },
};

/** A write and its concurrent duplicates in one process. */
const duplicates: Curve = {
  ...{ id: "duplicates", unit: "us", theory: "flat", sizes: [100, 1_000, 10_000], rounds: 5 },
  at: (size) => {
    const taken = { take: async () => undefined, complete: async () => true };
    const once = createOnce({
      store: taken as never, // safe: the run calls nothing else of the store
      clock: systemClock,
      ...{ waitMs: 60_000, draining: new AbortController().signal },
    });
    const answer = { status: 200, headers: {}, cookies: [], body: "{}" };
    let runs = 0;
    return () => {
      runs += 1;
      const key = claimKey(["growth"], `${size} ${runs}`);
      const run = () =>
        once.run({
          claim: { kind: "write", key, replayedHeaders: [], deadlineMs: undefined },
          ...{ logPrefix: "once", log, signal: undefined },
          work: () => new Promise<typeof answer>((done) => setImmediate(done, answer)),
          answerOf: (result) => result,
        });
      return timeOf(size, () => Promise.all(numbers(size).map(run)));
    };
  },
};

/** The most consumers of one event that run at the same time. */
const consumers: Curve = {
  ...{ id: "consumers", unit: "runs", theory: "flat", sizes: [100, 300, 1_000] },
  at: (size) => async () => {
    let [running, most] = [0, 0];
    const feature = defineFeature("grown", (r) => {
      const stored = r.event("grown.stored", z.object({}));
      for (const n of numbers(size))
        r.on(stored, {
          name: `c${n}`,
          handler: async () => {
            running += 1;
            most = Math.max(most, running);
            for (const _ of numbers(500)) await new Promise((done) => setImmediate(done));
            running -= 1;
          },
        });
    });
    const app = await startTestApp(buildServer({ features: [feature] }));
    const event = { kind: "shared", type: "grown.stored", eventId: "e-1", payload: {} } as const;
    await app.deliver({ ...event, causedBy: "c", origRequestId: "o", tenantId: "acme" });
    await app.close();
    return most;
  },
};
