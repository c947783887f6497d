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

import { metricList } from "../../src/metrics/metric-list.ts";
import { shop } from "../fixtures/measured.ts";

/** Registers OpenTelemetry's own SDK, as an application does. */
function registered() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const provider = new MeterProvider({
    readers: [new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })],
  });
  api.setGlobalMeterProvider(provider);
  /** Values by name and labels. */
  const read = async () => {
    await provider.forceFlush();
    const scopes = exporter.getMetrics().at(-1)?.scopeMetrics ?? [];
    return scopes.flatMap(({ scope, metrics }) =>
      metrics.flatMap(({ descriptor, dataPoints }) =>
        dataPoints.map(({ attributes, value }) => ({ scope: scope.name, ...descriptor, attributes, value })),
      ),
    );
  };
  return { read, shutdown: () => provider.shutdown() };
}

afterEach(() => api.disable());

test("with OpenTelemetry's SDK registered everything is measured by its meter, without any option", async () => {
  const { read, shutdown } = registered();
  const server = buildServer({ features: [shop] });
  const app = await startTestApp(server);
  const ann = { id: "ann", tenantId: "acme" };
  await app.fetch("/orders", { method: "POST", as: ann, body: { id: "1" }, headers: { "Idempotency-Key": "1" } });
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
        "http.response.status_code": "201",
      },
      value: { count: 1, buckets: { boundaries: [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10] } },
    },
  ]);
  expect(of("keelson.claims")).toContainEqual(
    expect.objectContaining({ attributes: { "keelson.kind": "write", "keelson.outcome": "taken" }, value: 1 }),
  );
  expect(of("shop.order.value").map(({ attributes }) => attributes)).toEqual([{ plan: "pro" }, { plan: "other" }]);
  expect(of("keelson.outbox.length")).toMatchObject([{ attributes: {}, value: expect.any(Number) }]);
  const known = [...metricList, ...server.registry.metrics.values()].map(({ name }) => name);
  expect(points.filter(({ name }) => !known.includes(name))).toEqual([]);
  await app.close();
  await shutdown();
});
