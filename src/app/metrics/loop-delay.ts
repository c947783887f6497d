import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Metrics } from "../../base/metrics/metrics.ts";

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
