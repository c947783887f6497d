import fc from "fast-check";
import { expect, test } from "vitest";
import { runs } from "../../../test/support/runs.ts";
import { createMetrics, maxSeries, type SeriesLabels } from "./bounded-metrics.ts";
import {
  type MetricDeclaration,
  type MetricName,
  metricList,
  otherOf,
  prometheusLabel,
  prometheusName,
} from "./metric-list.ts";
import type { MetricLabels } from "./metrics.ts";

const declared = {
  routes: ["/files", "/files/:id"],
  handlers: ["files.file.scan"],
  channels: ["log"],
};
const own: MetricDeclaration = {
  name: "shop.order.placed",
  kind: "counter",
  unit: "{order}",
  labels: { plan: ["free", "pro"] },
  text: "Orders.",
};

const measuring = () => {
  const taken: { readonly name: string; readonly value: number; readonly labels: SeriesLabels }[] =
    [];
  const sink = {
    record: ({ name }: MetricDeclaration, value: number, labels: SeriesLabels) =>
      void taken.push({ name, value, labels }),
  };
  return { taken, metrics: createMetrics({ own: [own], declared, sinks: [sink] }) };
};

/** Whether a label may have a value. */
const allows = ({ labels }: MetricDeclaration, name: string, value: string) => {
  const values = labels[name];
  if (values === "statuses") return /^[1-5]\d\d$/.test(value) || value === otherOf(name);
  const known: readonly string[] = typeof values === "string" ? declared[values] : (values ?? []);
  return known.includes(value) || value === otherOf(name);
};

test("emits only declared labels with declared values", () => {
  const hostile = fc.oneof(
    fc.string(),
    fc.constantFrom("GET", "/files", "200", "taken", "__proto__", "constructor", "\n"),
    fc.uuid(),
  );
  const all: readonly MetricDeclaration[] = [...metricList, own];
  const names = [
    ...new Set(all.flatMap(({ labels }) => Object.keys(labels))),
    "tenant",
    "toString",
  ];
  const labels = fc.dictionary(fc.constantFrom(...names), fc.option(hostile, { nil: undefined }));
  fc.assert(
    fc.property(fc.constantFrom(...all), labels, fc.double(), (metric, given, value) => {
      const { taken, metrics } = measuring();
      const record = metrics.record as (
        name: MetricName,
        value: number,
        labels: MetricLabels,
      ) => void; // as plain JavaScript would
      if (metric === own) metrics.add(metric.name, value, given);
      else record(metric.name as MetricName, value, given);

      for (const { name, labels: out } of taken) {
        expect(name).toBe(metric.name);
        for (const [label, text] of Object.entries(out))
          expect(allows(metric, label, text)).toBe(true);
        expect(Object.keys(out).sort()).toEqual(
          Object.keys(metric.labels)
            .filter((label) => given[label] !== undefined && Object.hasOwn(given, label))
            .sort(),
        );
      }
    }),
    { numRuns: runs(500) },
  );
});

test("a metric has a bounded number of series, and the rest share one", () => {
  const labels = Object.fromEntries(
    ["a", "b", "c"].map((name) => [
      name,
      Array.from({ length: 50 }, (_, index) => `${name}${index}`),
    ]),
  );
  const wide: MetricDeclaration = { ...own, labels };
  const seen = new Set<SeriesLabels>();
  const metrics = createMetrics({
    own: [wide],
    declared,
    sinks: [{ record: (_metric, _value, out) => void seen.add(out) }],
  });
  for (let index = 0; index < 10_000; index += 1) {
    metrics.add(own.name, 1, {
      a: `a${index % 50}`,
      b: `b${Math.floor(index / 50) % 50}`,
      c: `c${Math.floor(index / 2_500)}`,
    });
  }

  expect(seen.size).toBe(maxSeries + 1);
  expect([...seen].at(-1)).toEqual({ a: "other", b: "other", c: "other" });
});

test("the same series always has the same labels", () => {
  const { taken, metrics } = measuring();
  for (const plan of ["pro", "pro", "mine", "pro", "yours"]) metrics.add(own.name, 2, { plan });

  expect([...new Set(taken.map(({ labels }) => labels))]).toEqual([
    { plan: "pro" },
    { plan: "other" },
  ]);
  expect(Object.isFrozen(taken[0]?.labels)).toBe(true);
});

test("reports why a value is rejected, once for each metric", () => {
  const { taken, metrics } = measuring();

  expect(metrics.add("shop.order.unknown", 1)).toBe(
    "no feature of this server declares it; add r.metric",
  );
  expect(metrics.add("shop.order.unknown", 1)).toBeUndefined();
  expect(metrics.add("http.server.request.duration", 1)).toMatch(/no feature/);
  expect(metrics.add("order.placed", 1)).toBe("its whole name is shop.order.placed");
  for (const value of [
    Number.NaN,
    -1,
    Number.POSITIVE_INFINITY,
    Number.MAX_VALUE,
    "1" as unknown as number,
  ]) {
    const again = metrics.add(own.name, value);
    expect([undefined, "its value is not a number from 0 to 2^360"]).toContain(again);
  }
  expect(taken).toEqual([]);
  metrics.add(own.name, 2 ** 360); // as much as CloudWatch takes
  expect(taken).toHaveLength(1);
});

test("reports an invalid name once for each type", () => {
  const { metrics } = measuring();
  const told = [{}, {}, [], null, Symbol("a"), Symbol("b"), undefined].map((name) =>
    metrics.add(name as string, 1),
  );

  expect(told.map((reason) => reason !== undefined)).toEqual([
    true,
    false,
    false,
    false,
    true,
    false,
    true,
  ]);
});

test("undeclared names do not fill the memory, and are no longer reported at some point", () => {
  const { metrics } = measuring();
  const told = Array.from({ length: 5_000 }, (_, index) =>
    metrics.add(`shop.order.x${index}`, 1),
  ).filter((one) => one !== undefined);

  expect(told).toHaveLength(100);
});

test("a failing reader disturbs nobody", () => {
  const broken = {
    record: () => {
      throw new Error("disk full");
    },
  };
  const metrics = createMetrics({ own: [own], declared, sinks: [broken] });

  expect(() => metrics.record("keelson.wall.hits", 1)).not.toThrow();
  expect(metrics.add(own.name, 1)).toBe("Error: disk full");
});

test("reports a reader that throws a value other than an error", () => {
  const broken = {
    record: () => {
      throw Object.create(null);
    },
  };

  expect(createMetrics({ own: [own], declared, sinks: [broken] }).add(own.name, 1)).toBe(
    "a reader of metrics has failed",
  );
});

test("a failing reader takes nothing from the others", () => {
  const taken: unknown[] = [];
  const broken = {
    record: () => {
      throw new Error("disk full");
    },
  };
  const whole = { record: (_metric: MetricDeclaration, value: number) => void taken.push(value) };
  const metrics = createMetrics({ own: [own], declared, sinks: [broken, whole, broken, whole] });
  metrics.record("keelson.wall.hits", 7);
  metrics.add(own.name, 8);

  expect(taken).toEqual([7, 7, 8, 8]);
});

test("adding a value throws nothing", () => {
  const { taken, metrics } = measuring();
  const textless = Object.create(null) as object;
  const thrower = {
    get plan(): string {
      throw textless;
    },
  };

  expect(metrics.add(own.name, 1, thrower)).toBe("its labels cannot be read");
  for (const labels of [
    { plan: textless },
    null,
    new Proxy({}, { getOwnPropertyDescriptor: () => Object(1) }),
  ])
    expect(metrics.add(own.name, 1, labels as never)).toBeUndefined(); // it has been told
  expect(taken).toEqual([]);
});

test("no label can be a tenant, a user, a key or an ID, and dimensions are labels", () => {
  for (const { labels, dimensions = [], name } of metricList as readonly MetricDeclaration[]) {
    expect(Object.keys(labels).filter((label) => /tenant|user|key|id$/i.test(label))).toEqual([]);
    expect(
      dimensions.filter((dimension) => !(dimension in labels)),
      name,
    ).toEqual([]);
  }
});

test("each metric has its own name in Prometheus, in valid characters", () => {
  const names = metricList.map(prometheusName);

  expect(new Set(names).size).toBe(names.length);
  for (const name of names) expect(name).toMatch(/^[a-z_][a-z0-9_]*$/);
  expect(
    prometheusName({ name: "http.server.request.duration", kind: "histogram", unit: "s" }),
  ).toBe("http_server_request_duration_seconds");
  expect(prometheusName({ name: "keelson.claims", kind: "counter", unit: "{claim}" })).toBe(
    "keelson_claims_total",
  );
  expect(prometheusName({ name: "shop.order.total", kind: "counter", unit: "1" })).toBe(
    "shop_order_total",
  );
  expect(prometheusName({ name: "shop.order.total", kind: "counter", unit: "By" })).toBe(
    "shop_order_bytes_total",
  );
  expect(prometheusName({ name: "shop.order.seconds", kind: "histogram", unit: "s" })).toBe(
    "shop_order_seconds",
  );
  expect(prometheusName({ name: "shop.order.placed", kind: "counter", unit: "constructor" })).toBe(
    "shop_order_placed_total",
  );
  expect(prometheusLabel("http.response.status_code")).toBe("http_response_status_code");
});
