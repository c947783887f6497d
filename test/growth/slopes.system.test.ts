// How computing grows with its size. Each of these curves was once steeper by an exponent of one half to one.
import { expect, test } from "vitest";
import { createServerLogger } from "../../src/base/log/server-logger.ts";
import { buildServer, createTenantConfig, defineFeature, type Feature } from "../../src/index.ts";
import { createPartitionCache } from "../../src/parts/config/cache/partition-cache.ts";
import { pathFrom, tenantPartition } from "../../src/parts/config/read/rows.ts";
import { type ParsedRoute, parseRoute } from "../../src/parts/http/route.ts";
import { createRouteTable } from "../../src/parts/http/route-table.ts";
import { slopeOf } from "./slope.ts";

const parsed = (text: string) => parseRoute(text) as ParsedRoute; // safe: these have no problem
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);

test("a boot grows in proportion to keys that have former names", async () => {
  const slope = await slopeOf([500, 4_000], 1.5, (count) => {
    const keys = Object.fromEntries(
      numbers(count).map((n) => [
        `key${n}`,
        createTenantConfig("number", { default: 1, formerly: `old:config:key-${n}` }),
      ]),
    );
    const feature = defineFeature("many", (r) => void r.config({ keys }));
    return () => buildServer({ features: [feature] });
  });

  expect(slope).toBeLessThan(1.5);
});

test("a boot grows in proportion to the uses of features, of which each uses all others", async () => {
  const slope = await slopeOf([100, 600], 2.35, (count) => {
    const features: Feature[] = numbers(count).map((n) =>
      defineFeature(`f${n}`, () => {}, {
        uses: Object.fromEntries(
          numbers(count)
            .filter((other) => other !== n)
            .map((other) => [`f${other}`, "read"]),
        ),
      }),
    );
    return () => buildServer({ features });
  });

  expect(slope).toBeLessThan(2.35); // there are count * (count - 1) uses
});

test("OPTIONS * takes no longer with many routes", async () => {
  const slope = await slopeOf([100, 10_000], 0.5, (count) => {
    const table = createRouteTable(
      numbers(count).map((n) => ({ route: parsed(`GET /things/${n}`), target: n })),
    );
    table.match("OPTIONS", "*");
    return () => {
      for (let time = 0; time < 1_000; time++) table.match("OPTIONS", "*");
    };
  });

  expect(slope).toBeLessThan(0.5);
});

test("a new tenant in a full cache takes no longer in a large one", async () => {
  const slope = await slopeOf([100, 5_000], 0.3, (limit) => {
    const cache = createPartitionCache(limit);
    const use = (n: number) => cache.use(pathFrom(tenantPartition(`t${n}`)));
    for (let n = 0; n < limit; n++) use(n);
    return () => {
      for (let n = limit; n < limit + 20_000; n++) use(n);
    };
  });

  expect(slope).toBeLessThan(0.3);
});

test("a log line has no field from which all others take longer", async () => {
  const log = createServerLogger({ env: {}, environment: "test", write: () => {} });
  const slope = await slopeOf([16, 18], 3.5, (count) => {
    const data = Object.fromEntries(numbers(count).map((n) => [`field${n}`, `value ${n}`]));
    return () => {
      for (let time = 0; time < 1_000; time++) log.info("many.fields", data);
    };
  });

  expect(slope).toBeLessThan(3.5);
});
