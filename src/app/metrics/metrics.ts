import { createMetrics } from "../../base/metrics/bounded-metrics.ts";
import { metricList } from "../../base/metrics/metric-list.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import { declaredLabels } from "./declared-labels.ts";
import { measureLoopDelay } from "./loop-delay.ts";
import type { Measuring } from "./measuring.ts";
import { otelSink, registeredMeter } from "./otel-metrics.ts";
import { loadPrometheus, prometheusSink } from "./prometheus-metrics.ts";
import { createRunMetrics } from "./run-metrics.ts";

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
