// The number of times that a full cache makes room. Its first entry is slow to find, because iterating a `Map` passes over every
// entry deleted before.
import { afterEach, expect, test } from "vitest";
import { createRateLimit } from "../../src/app/routes/client-log.ts";
import { Recent } from "../../src/base/process/recent.ts";
import { createPartitionCache } from "../../src/parts/config/cache/partition-cache.ts";
import { createFirstSeen } from "../../src/parts/config/read/resolver.ts";
import { pathFrom, tenantPartition } from "../../src/parts/config/read/rows.ts";
import { createSessions } from "../../src/parts/wall/session-credentials.ts";

const { keys, values } = Map.prototype;
const ofSet = Set.prototype[Symbol.iterator];
afterEach(() => {
  Object.assign(Map.prototype, { keys, values });
  Set.prototype[Symbol.iterator] = ofSet;
});

/** Counts how often `work` iterates a `Map` or a `Set` with entries. */
function iterationsOf(work: () => void): number {
  let count = 0;
  Map.prototype.keys = function countedKeys<Key>(this: Map<Key, unknown>) {
    if (this.size > 0) count += 1;
    return keys.call(this) as MapIterator<Key>;
  };
  Map.prototype.values = function countedValues<Value>(this: Map<unknown, Value>) {
    if (this.size > 0) count += 1;
    return values.call(this) as MapIterator<Value>;
  };
  Set.prototype[Symbol.iterator] = function counted<Value>(this: Set<Value>) {
    if (this.size > 0) count += 1;
    return ofSet.call(this) as SetIterator<Value>;
  };
  work();
  Object.assign(Map.prototype, { keys, values });
  Set.prototype[Symbol.iterator] = ofSet;
  return count;
}

const clock = { now: () => 1 };
const caches: readonly (readonly [
  name: string,
  open: (limit: number) => (n: number) => unknown,
])[] = [
  [
    "tenants",
    (limit) => {
      const cache = createPartitionCache(limit);
      return (n) => cache.use(pathFrom(tenantPartition(`t${n}`)));
    },
  ],
  [
    "credentials",
    (limit) => {
      const credentials = { accessKeyId: "a", secretAccessKey: "s", sessionToken: "t" };
      const assume = async () => credentials;
      const find = createSessions({ assume, clock, onStale: () => {}, most: limit });
      return (n) => void find({ key: "tenant", value: `t${n}` });
    },
  ],
  [
    "misfits",
    (limit) => {
      const isNew = createFirstSeen(limit);
      return (n) => isNew(`m${n}`);
    },
  ],
  [
    "API keys",
    (limit) => {
      const known = new Recent<number>(limit, 60_000);
      return (n) => known.set(`k${n}`, n, 1);
    },
  ],
];

test.each(caches.flatMap(([name, open]) => [100, 5_000].map((limit) => ({ name, open, limit }))))(
  "$limit $name make room about ten times for as many new ones",
  ({ open, limit }) => {
    const use = open(limit);
    const useFrom = (start: number) => {
      for (let n = start; n < start + limit; n += 1) use(n);
    };
    useFrom(0);

    expect(iterationsOf(() => useFrom(limit))).toBeLessThanOrEqual(12);
  },
);

test("addresses of client logs make room about ten times for 10,000 new ones", () => {
  const take = createRateLimit([{ burst: 10, perSecond: 1 }], clock);
  const takeFrom = (start: number) => {
    for (let n = start; n < start + 10_000; n += 1) take(`ip ${n}`, 1);
  };
  takeFrom(0);

  expect(iterationsOf(() => takeFrom(10_000))).toBeLessThanOrEqual(12);
});
