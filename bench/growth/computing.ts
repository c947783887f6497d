import { openApiDocument } from "../../src/app/openapi/openapi.ts";
import { serverInternals } from "../../src/app/server/server.ts";
import { createServerLogger } from "../../src/base/log/server-logger.ts";
import { Recent } from "../../src/base/process/recent.ts";
import {
  access,
  buildServer,
  createTenantConfig,
  defineFeature,
  type Feature,
} from "../../src/index.ts";
import { createCachedRows, groupKeys } from "../../src/parts/config/cache/cached-rows.ts";
import { createPartitionCache } from "../../src/parts/config/cache/partition-cache.ts";
import { createFirstSeen } from "../../src/parts/config/read/resolver.ts";
import { pathFrom, tenantPartition, userPartition } from "../../src/parts/config/read/rows.ts";
import { type ParsedRoute, parseRoute } from "../../src/parts/http/route.ts";
import { createRouteTable } from "../../src/parts/http/route-table.ts";
import { createSessions } from "../../src/parts/wall/session-credentials.ts";
import { type Curve, numbers, timeOf } from "./curve.ts";

const parsed = (text: string) => parseRoute(text) as ParsedRoute; // safe: these have no problem
const tableOf = (count: number) =>
  createRouteTable(numbers(count).map((n) => ({ route: parsed(`GET /f${n}/:id`), target: n })));

/** Measures new entries of something that is full with `size` entries. */
function full(id: string, open: (size: number) => (n: number) => unknown): Curve {
  return {
    ...{ id, unit: "ns", theory: "flat", sizes: [100, 1_000, 5_000, 20_000] },
    at: (size) => {
      const use = open(size);
      let next = 0;
      const useNext = (times: number) => {
        for (const end = next + times; next < end; next += 1) use(next);
      };
      useNext(size);
      return () => timeOf(20_000, () => useNext(20_000));
    },
  };
}

const caches = [
  full("new-user", (size) => {
    const cache = createPartitionCache(size);
    return (n) => cache.use(pathFrom(userPartition(`t${n}`, "ann")));
  }),
  full("new-tenant", (size) => {
    const cache = createPartitionCache(size);
    return (n) => cache.use(pathFrom(tenantPartition(`t${n}`)));
  }),
  full("new-session", (size) => {
    const credentials = { accessKeyId: "a", secretAccessKey: "s", sessionToken: "t" };
    const clock = { now: () => 1 };
    const find = createSessions({
      ...{ assume: async () => credentials, clock, onStale: () => {}, most: size },
    });
    return (n) => void find({ key: "tenant", value: `t${n}` });
  }),
  full("new-misfit", (size) => {
    const isNew = createFirstSeen(size);
    return (n) => isNew(`misfit ${n}`);
  }),
  full("new-api-key", (size) => {
    const known = new Recent<number>(size, 60_000);
    return (n) => known.set(`hash ${n}`, n, 1);
  }),
];

const routes: Curve[] = [
  {
    ...{ id: "routes", unit: "ns", theory: "flat", sizes: [10, 100, 1_000, 10_000] },
    at: (size) => {
      const table = tableOf(size);
      const paths = numbers(100).map((n) => `/f${(n * 7_919) % size}/1`);
      return () =>
        timeOf(20_000, () => {
          for (let time = 0; time < 200; time += 1)
            for (const path of paths) table.match("GET", path);
        });
    },
  },
  {
    ...{ id: "options-star", unit: "ns", theory: "flat", sizes: [10, 100, 1_000, 10_000] },
    at: (size) => {
      const table = tableOf(size);
      return () =>
        timeOf(20_000, () => {
          for (let time = 0; time < 20_000; time += 1) table.match("OPTIONS", "*");
        });
    },
  },
  {
    ...{ id: "openapi", unit: "ms", theory: "linear", sizes: [10, 100, 1_000] },
    at: (size) => {
      const feature = defineFeature("many", (r) => {
        for (const n of numbers(size))
          r.query(`thing.show-${n}`, {
            ...{ route: `GET /things-${n}/:id`, access: access.authenticated },
            handler: async () => ({}),
          });
      });
      const server = serverInternals(buildServer({ features: [feature] }));
      return () => timeOf(1, () => openApiDocument(server, { own: [] }));
    },
  },
];

const boots: Curve[] = [
  {
    ...{ id: "boot-formerly", unit: "ms", theory: "linear", sizes: [500, 2_000, 8_000] },
    rounds: 5,
    at: (size) => {
      const keys = Object.fromEntries(
        numbers(size).map((n) => [
          `key${n}`,
          createTenantConfig("number", { default: 1, formerly: `old:config:key-${n}` }),
        ]),
      );
      const feature = defineFeature("many", (r) => void r.config({ keys }));
      return () => timeOf(1, () => buildServer({ features: [feature] }));
    },
  },
  {
    ...{ id: "boot-uses", unit: "ms", theory: "square", sizes: [100, 300, 900] },
    rounds: 3,
    at: (size) => {
      const features: Feature[] = numbers(size).map((n) => {
        const others = numbers(size).filter((other) => other !== n);
        const uses = Object.fromEntries(others.map((other) => [`f${other}`, "read"] as const));
        return defineFeature(`f${n}`, () => {}, { uses });
      });
      return () => timeOf(1, () => buildServer({ features }));
    },
  },
];

const lines: Curve = {
  ...{ id: "log-fields", unit: "ns", theory: "linear", sizes: [8, 16, 32, 64] },
  at: (size) => {
    const log = createServerLogger({ env: {}, environment: "test", write: () => {} });
    // Parsed, because V8 keeps an object of many added members as a slow dictionary.
    const data = JSON.parse(`{${numbers(size).map((n) => `"field${n}":"value ${n}"`)}}`);
    return () =>
      timeOf(5_000, () => {
        for (let time = 0; time < 5_000; time += 1) log.info("many.fields", data);
      });
  },
};

const owner = { tenantId: "acme", userId: "ann" };

function cachedRows(keys: number, maxTenants: number) {
  const { definition } = createTenantConfig("number", { default: 1 });
  const registered = numbers(keys).map((n) => {
    return { id: `many:config:key-${n}`, feature: "many", name: `key-${n}`, definition };
  });
  return createCachedRows({
    reader: { read: async (addresses) => addresses.map(() => undefined) },
    keyGroups: groupKeys(registered),
    clock: { now: () => 1_000_000 },
    ...{ ttlMs: 5_000, maxStaleMs: 5_000, maxTenants },
  });
}

const reads: Curve[] = [
  {
    ...{ id: "warm-read", unit: "ns", theory: "flat", sizes: [10, 100, 1_000, 10_000] },
    at: async (size) => {
      const view = cachedRows(size, 10).view(owner, () => {});
      await view.rowsOf("many:config:key-0", "tenant");
      return () =>
        timeOf(100_000, () => {
          for (let time = 0; time < 100_000; time += 1) view.rowsOf("many:config:key-1", "tenant");
        });
    },
  },
  {
    ...{ id: "memory", unit: "bytes", theory: "flat", sizes: [2_000, 20_000, 200_000] },
    at: (size) => () => {
      const before = heapBytes();
      const rows = cachedRows(10, 1_000);
      for (const n of numbers(size))
        rows.noteWrite(tenantPartition(`t${n}`), "many:config:key-0", { value: n, version: 1 });
      const bytes = heapBytes() - before;
      if (rows.size().tenants > 1_000) throw new Error("more tenants are cached than allowed");
      return bytes;
    },
  },
];

/** `npm run bench` starts Node with `--expose-gc`. */
function heapBytes(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

export const computingCurves: readonly Curve[] = [...caches, ...routes, ...boots, lines, ...reads];
