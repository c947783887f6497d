import type { ScheduleDeclaration } from "../../src/app/schedules/schedule.ts";
import { createSchedules } from "../../src/app/schedules/schedules.ts";
import { dynamoSchedules } from "../../src/aws/stores/schedule-store.ts";
import { dynamoTenants } from "../../src/aws/stores/tenant-store.ts";
import { createApiKeys } from "../../src/parts/api-keys/api-keys.ts";
import { generateSecret, hashOfSecret } from "../../src/parts/api-keys/secret.ts";
import { RateCounter } from "../../src/parts/limits/rate-counter.ts";
import type { countedDatabase } from "../../test/growth/counted-database.ts";
import { type Curve, numbers, timeOf } from "./curve.ts";

type Store = ReturnType<typeof countedDatabase>;

/** Token leases by processes, checks of API keys by keys, schedules by tenants. */
export function newestCurves(store: Store): readonly Curve[] {
  return [leases, apiKeys, scheduleLook(store), scheduleRun];
}

/** Calls of a process for its part of a tenant's 60,000 requests in a window. */
const leases: Curve = {
  ...{ id: "leases", unit: "calls", theory: "log", sizes: [1, 10, 100, 1_000, 10_000] },
  at: (size) => async () => {
    let [taken, calls] = [0, 0];
    const limit = { id: "growth", window: "minute" } as const;
    const take = async (_row: unknown, count: number) => {
      calls += 1;
      taken += count;
      return taken - count;
    };
    const counter = new RateCounter({ limit, store: { take }, clock: { now: () => 1_000_000 } });
    for (const _ of numbers(size)) await counter.take({ text: "tenant acme" }, 1_000_000, 1);
    return calls;
  },
};

/** A check of one of the keys that the process knows. */
const apiKeys: Curve = {
  ...{ id: "api-key-check", unit: "us", theory: "flat", sizes: [10, 100, 1_000] },
  at: async (size) => {
    const secrets = numbers(size).map(() => generateSecret());
    const owners = new Map(
      secrets.map((secret, n) => [
        hashOfSecret(secret),
        { id: `key_${n}`, tenantId: "acme", roles: [], endsMs: undefined },
      ]),
    );
    const stored = { find: async (hash: string) => owners.get(hash), noteUse: async () => {} };
    const keys = createApiKeys({
      store: async () => stored as never, // safe: a check calls nothing else
      clock: { now: () => 1_000_000 },
      onLostUse: () => {},
    });
    const checked = numbers(10_000).map((n) => secrets[(n * 7_919) % size] ?? "");
    for (const secret of secrets) await keys.verify(secret);
    return () =>
      timeOf(checked.length, async () => {
        for (const secret of checked) await keys.verify(secret);
      });
  },
};

const declaration: ScheduleDeclaration = {
  ...{ feature: "growth", name: "growth.report.send", cron: "0 3 * * *", timeZone: "UTC" },
  ...{ missed: "once", for: "tenants", run: () => {} },
};
const noonMs = Date.UTC(2026, 10, 29, 12);
const runtime = {
  server: { registry: { schedules: new Map([[declaration.name, declaration]]) } },
  clock: { now: () => noonMs },
  ...{ log: { warn: () => {}, error: () => {} }, metrics: undefined },
  messages: lazy({ signJob: async () => undefined }),
};

function lazy<Value>(value: Value) {
  return { value, opening: undefined, open: async () => value };
}

/** Calls with which a process finds that no run of a tenants' schedule is due. */
function scheduleLook(store: Store): Curve {
  return {
    ...{ id: "schedule-look", unit: "calls", theory: "flat", sizes: [10, 100, 1_000] },
    at: (size) => async () => {
      const tenants = dynamoTenants(store.database, "growth-claims");
      for (const n of numbers(size))
        await tenants.add({ tenantId: `t${size}-${n}`, timeZone: "UTC", createdMs: 1_000_000 });
      const schedules = dynamoSchedules(store.database, "growth-claims");
      let nowMs = noonMs;
      const [schedule] = await createSchedules(
        { ...runtime, clock: { now: () => nowMs } },
        // Safe: a look sends only due jobs.
        { schedules: lazy(schedules), tenants: lazy(tenants), messaging: lazy({} as never) },
        async () => ({ kind: "skipped" }),
      );
      // The first one writes when it was, and the second one reads that.
      for (const _ of numbers(2)) await schedule?.look();
      nowMs += 60_000;
      const counted = await store.counted(async () => schedule?.look());
      return Object.values(counted.calls).reduce((sum, count) => sum + count, 0);
    },
  };
}

/** Calls for each tenant when such a schedule fires. */
const scheduleRun: Curve = {
  ...{ id: "schedule-run", unit: "calls", theory: "flat", sizes: [100, 1_000, 10_000] },
  at: (size) => async () => {
    let calls = 0;
    const counted = <Answer>(answer: Answer) => {
      calls += 1;
      return Promise.resolve(answer);
    };
    const all = numbers(size).map((n) => {
      return { tenantId: `t${n}`, timeZone: "UTC", createdMs: 1, suspendedMs: undefined };
    });
    const tenants = {
      timeZones: () => counted([{ timeZone: "UTC", sinceMs: 1 }]),
      page: (limit: number, after?: { readonly tenantId: string }) => {
        const from = after === undefined ? 0 : Number(after.tenantId.slice(1)) + 1;
        const items = all.slice(from, from + limit);
        return counted({ items, next: from + limit < size ? items.at(-1) : undefined });
      },
    };
    const yesterday = noonMs - 86_400_000;
    const schedules = {
      ...{ idleUntil: new Map(), firstLooks: new Map() },
      read: () => counted({ lastMs: yesterday }),
      begin: () => counted({ attempts: 1, sent: undefined }),
      advance: () => counted(true),
      done: () => ({}),
    };
    const jobs = { send: () => counted("m") };
    const [schedule] = await createSchedules(
      runtime,
      // Safe casts: a run calls nothing else.
      {
        schedules: lazy(schedules as never),
        tenants: lazy(tenants as never),
        messaging: lazy({ jobs, fairJobs: jobs, fairMode: "off" } as never),
      },
      async (_runtime, _adapters, task) => {
        const trace = { headers: () => ({}) };
        await task.run({ trace, log: { info: () => {} } } as never);
        return { kind: "processed" };
      },
    );
    const looked = await schedule?.look();
    if (looked?.kind !== "fired") throw new Error(`the schedule ${looked?.kind}`);
    return calls / size;
  },
};
