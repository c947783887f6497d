import { monitorEventLoopDelay } from "node:perf_hooks";
import { createMetrics } from "../../base/metrics/bounded-metrics.ts";
import { metricList } from "../../base/metrics/metric-list.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import { otelSink, registeredMeter } from "./otel-metrics.ts";
import { loadPrometheus, prometheusSink } from "./prometheus-metrics.ts";
import { createRunMetrics, declaredLabels, type Measuring } from "./run-metrics.ts";

/**
 * Opens the metrics of a container: for OpenTelemetry's SDK if one is registered, and for `GET
 * /metrics` if `metrics.access` is set.
 */
export async function openContainerMetrics(
  server: DeclaredServer,
  load = loadPrometheus,
): Promise<Measuring> {
  const { options, registry } = server;
  const meter = registeredMeter();
  const wantsPage = options.metrics?.access !== undefined;
  const client = wantsPage ? await load() : undefined;
  const missing = wantsPage && client === undefined ? "prom-client" : undefined;
  if (meter === undefined && client === undefined)
    return { metrics: undefined, observer: undefined, missing };
  const own = [...registry.metrics.values()];
  const prometheus = client && prometheusSink(client, [...metricList, ...own]);
  const otel = meter && otelSink(meter);
  const sinks = [otel, prometheus].filter((sink) => sink !== undefined);
  const metrics = createMetrics({ own, declared: declaredLabels(server), sinks });
  const endLoopDelay = measureLoopDelay(metrics);
  const close = () => {
    endLoopDelay();
    otel?.close();
  };
  const { basePath } = options;
  const observer = (clock: Clock) => createRunMetrics({ metrics, clock, basePath });
  return { metrics: { ...metrics, page: prometheus?.page, close }, observer, missing };
}

/** Length of each measurement, in milliseconds. */
const everyMs = 10_000;

export function measureLoopDelay({ record }: Pick<Metrics, "record">, ms = everyMs): () => void {
  const delay = monitorEventLoopDelay({ resolution: 20 });
  delay.enable();
  const timer = setInterval(() => {
    record("nodejs.eventloop.delay.p50", delay.percentile(50) / 1e9);
    record("nodejs.eventloop.delay.p99", delay.percentile(99) / 1e9);
    record("nodejs.eventloop.delay.max", delay.max / 1e9);
    delay.reset();
  }, ms);
  timer.unref();
  return () => {
    clearInterval(timer);
    delay.disable();
  };
}
