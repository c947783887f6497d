import type { DeclaredServer } from "../declare/declared-server.ts";
import { createMetrics } from "../metrics/bounded-metrics.ts";
import { metricList } from "../metrics/metric-list.ts";
import type { Measuring } from "../observe/measuring.ts";
import { createRunMetrics } from "../observe/run-metrics.ts";
import type { Clock } from "../process/clock.ts";
import { declaredLabels } from "../server/declared-labels.ts";
import { measureLoopDelay } from "./loop-delay.ts";
import { otelSink, registeredMeter } from "./otel-metrics.ts";
import { loadPrometheus, prometheusSink } from "./prometheus-metrics.ts";

/**
 * Opens the metrics of a container: for OpenTelemetry's SDK, where one has registered itself, and for `GET /metrics`, where
 * somebody may read it.
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
  const observer = (clock: Clock) =>
    createRunMetrics({ metrics, clock, basePath: options.basePath });
  return { metrics: { ...metrics, page: prometheus?.page, close }, observer, missing };
}
