import { metrics as api } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { buildServer } from "keelson";
import { startTestApp } from "keelson/testing";
import { afterEach, expect, test } from "vitest";

import { openContainerMetrics } from "../../src/app/metrics/metrics.ts";
import { createRuntime } from "../../src/app/server/create-runtime.ts";
import { serverInternals } from "../../src/app/server/server.ts";
import { metricList } from "../../src/base/metrics/metric-list.ts";
import { beginLife } from "../../src/hosts/container/process-life.ts";
import { shop } from "../fixtures/measured.ts";
import { unusedAdapters } from "../fixtures/unused-adapters.ts";

/** Registers OpenTelemetry's own SDK, as an application does. */
function registered(temporality = AggregationTemporality.CUMULATIVE) {
  const exporter = new InMemoryMetricExporter(temporality);
  const provider = new MeterProvider({
    readers: [new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })],
  });
  api.setGlobalMeterProvider(provider);
  /** Values by name and labels. */
  const read = async () => {
    exporter.reset();
    await provider.forceFlush();
    return sent();
  };
  const sent = () => {
    const scopes = exporter.getMetrics().at(-1)?.scopeMetrics ?? [];
    return scopes.flatMap(({ scope, metrics }) =>
      metrics.flatMap(({ descriptor, dataPoints }) =>
        dataPoints.map(({ attributes, value }) => ({
          scope: scope.name,
          ...descriptor,
          attributes,
          value,
        })),
      ),
    );
  };
  return { read, sent, shutdown: () => provider.shutdown() };
}

afterEach(() => api.disable());

test("with OpenTelemetry's SDK registered, its meter records everything, without any option", async () => {
  const { read, shutdown } = registered();
  const server = buildServer({ features: [shop] });
  const app = await startTestApp(server);
  const ann = { id: "ann", tenantId: "acme" };
  for (const key of ["1", "1"]) {
    await app.fetch("/orders", {
      method: "POST",
      as: ann,
      body: { id: "1" },
      headers: { "Idempotency-Key": key },
    });
  }
  await app.settled();
  const points = await read();
  const of = (name: string) => points.filter((point) => point.name === name);

  expect(of("http.server.request.duration")).toMatchObject([
    {
      scope: "keelson",
      unit: "s",
      attributes: {
        "http.request.method": "POST",
        "url.scheme": "http",
        "http.route": "/orders",
        "http.response.status_code": 201,
      },
      value: {
        count: 2,
        buckets: {
          boundaries: [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
        },
      },
    },
  ]);
  expect(of("keelson.claims")).toContainEqual(
    expect.objectContaining({
      attributes: { "keelson.kind": "write", "keelson.outcome": "taken" },
      value: 1,
    }),
  );
  expect(of("shop.order.value").map(({ attributes }) => attributes)).toEqual([
    { plan: "pro" },
    { plan: "other" },
  ]);
  expect(of("keelson.outbox.length")).toMatchObject([
    { attributes: {}, value: expect.any(Number) },
  ]);
  const known = [...metricList, ...server.registry.metrics.values()].map(({ name }) => name);
  expect(points.filter(({ name }) => !known.includes(name))).toEqual([]);
  await app.close();
  await shutdown();
});

test("a closed server stops reporting gauges, and other servers continue", async () => {
  const { read, shutdown } = registered(AggregationTemporality.DELTA); // the other goes on with what it has seen
  const [first, second] = await Promise.all(
    [1, 2].map(() => startTestApp(buildServer({ features: [shop] }))),
  );
  for (const app of [first, second]) {
    await app?.call("shop.order.place", { id: "1" }, { as: { id: "ann", tenantId: "acme" } });
    await app?.settled();
  }
  const lengths = async () => (await read()).filter(({ name }) => name === "keelson.outbox.length");

  expect(await lengths()).toHaveLength(1);
  await first?.close();
  expect(await lengths()).toHaveLength(1);
  await second?.close();
  expect(await lengths()).toEqual([]);
  await shutdown();
});

test("a stopping container sends the measure of its last sweep, and then stops reporting it", async () => {
  const { read, sent, shutdown } = registered(AggregationTemporality.DELTA); // the other goes on with what it has seen
  const server = buildServer({ features: [shop] });
  const runtime = createRuntime(server, {
    variables: {},
    write: () => {},
    openAdapters: async () => unusedAdapters,
    measuring: await openContainerMetrics(serverInternals(server)),
  });
  const ages = (points: ReturnType<typeof sent>) =>
    points.filter(({ name }) => name === "keelson.outbox.age").map(({ value }) => value);
  const life = beginLife(runtime, { lingerMs: 0, drainMs: 5_000, totalMs: 30_000 });
  life.tell({ type: "started" });
  const finished = async () => runtime.metrics?.record("keelson.outbox.age", 7);
  life.workers = { stop: () => {}, finished };
  life.tell({ type: "terminate" });

  expect(await life.ended).toBe(0);
  expect(ages(sent())).toEqual([7]);
  expect(ages(await read())).toEqual([]);
  await shutdown();
});

test("a failing exporter does not affect the service", async () => {
  const provider = new MeterProvider({ readers: [] });
  const broken = (): never => {
    throw new Error("no receiver");
  };
  api.setGlobalMeterProvider({
    ...provider,
    getMeter: () => ({ createCounter: broken, createHistogram: broken }),
  } as never); // as an SDK's has it
  const app = await startTestApp(buildServer({ features: [shop] }));

  expect((await app.fetch("/orders/7")).status).toBe(200);
  expect(app.logs.filter(({ msg }) => msg === "metrics.ignored")).toMatchObject([
    { reason: "Error: no receiver" },
  ]);
  await app.close();
});
