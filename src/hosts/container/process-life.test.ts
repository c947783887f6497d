import { EventEmitter } from "node:events";
import { metrics as api, trace } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { afterEach, expect, test, vi } from "vitest";
import { recordedMetrics } from "../../../test/support/recorded-metrics.ts";
import { otelSink, registeredMeter } from "../../app/metrics/otel-metrics.ts";
import { createRuntime } from "../../app/server/create-runtime.ts";
import { buildServer } from "../../app/server/server.ts";
import type { Logger } from "../../base/log/logger.ts";
import { createMetrics } from "../../base/metrics/bounded-metrics.ts";
import type { LifecycleEvent } from "../../base/process/lifecycle.ts";
import { beginLife, listen } from "./process-life.ts";

afterEach(() => {
  api.disable();
  trace.disable();
  vi.restoreAllMocks();
});

function begun(drainMs = 0, totalMs = 10_000, lingerMs = 0) {
  const server = buildServer({ features: [] });
  const measured = recordedMetrics();
  const logs: Record<string, unknown>[] = [];
  const runtime = createRuntime(server, {
    variables: {},
    write: (line) => void logs.push(JSON.parse(line) as Record<string, unknown>),
    openAdapters: () => Promise.reject(new Error("unused")),
    measuring: { metrics: measured.metrics, observer: undefined, missing: undefined },
  });
  return { measured, life: beginLife(runtime, { lingerMs, drainMs, totalMs }), runtime, logs };
}

test("A process that has opened nothing yet waits for nothing", async () => {
  const { life, runtime, logs, measured } = begun();
  expect([life.isAlive(), runtime.lifecycle.state]).toEqual([true, "running"]);
  life.tell({ type: "terminate" });
  expect(life.isAlive()).toBe(false);
  expect(await life.ended).toBe(1); // there was no time at all for what was never there
  expect(runtime.lifecycle.draining.aborted).toBe(true);
  expect(logs.at(-1)).toMatchObject({ msg: "shutdown.completed", signals: 1 });
  expect(measured.sums()).toEqual({ "keelson.drains lossy": 1 });
});

test("Readiness follows the state of the process", () => {
  const { life, runtime } = begun();
  life.tell({ type: "started" });
  expect(runtime.lifecycle.state).toBe("running");
  life.tell({ type: "fault" });
  expect(["draining", "in-flight-drain", "workers-stopped"]).toContain(runtime.lifecycle.state);
});

test.each([
  ["back", -300_000],
  ["forward", 120_000],
])(
  "a clock that is set %s during the linger moves no deadline of the shutdown",
  async (_way, stepMs) => {
    const { life, logs } = begun(30_000, 60_000, 50);
    life.tell({ type: "started" });
    life.tell({ type: "terminate" });
    const { now } = Date;
    vi.spyOn(Date, "now").mockImplementation(() => now() + stepMs);

    expect(await life.ended).toBe(0);
    const { phaseMs, cutOff } = logs.at(-1) as { phaseMs: { draining: number }; cutOff: unknown };
    expect(cutOff).toEqual([]);
    expect(phaseMs.draining).toSatisfy((ms: number) => Number.isInteger(ms) && ms >= 50);
  },
);

test("Shutdown waits for runs without a request, as it does for messages", async () => {
  const { life, runtime, logs, measured } = begun(5_000);
  const running = Promise.withResolvers<void>();
  runtime.inFlight.set("run 1", {
    work: running.promise,
    handler: "keelson.server.run",
    ids: { reason: "a task" },
  });
  life.tell({ type: "started" });
  life.tell({ type: "terminate" });
  await new Promise((resolve) => setImmediate(resolve));
  expect(runtime.lifecycle.state).toBe("workers-stopped");
  running.reject(new Error("it failed"));
  expect(await life.ended).toBe(0);
  expect(logs.at(-1)).toMatchObject({ msg: "shutdown.completed", clean: true });
  expect(measured.sums()).toEqual({ "keelson.drains clean": 1 });
});

test("an OpenTelemetry meter sends its metrics before the process ends, including how it ended", async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  api.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
  const { life, measured } = begun();
  const meter = registeredMeter();
  const metrics = createMetrics({
    own: [],
    declared: { routes: [], handlers: [], channels: [] },
    sinks: meter === undefined ? [] : [otelSink(meter)],
  });
  measured.metrics.record = metrics.record;
  life.tell({ type: "terminate" });
  await life.ended;

  const sent = exporter
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));
  expect(sent).toMatchObject([
    {
      descriptor: { name: "keelson.drains" },
      dataPoints: [{ value: 1, attributes: { "keelson.outcome": "lossy" } }],
    },
  ]);
});

test.each<[string, () => Promise<void>]>([
  ["never answers", () => new Promise(() => {})],
  ["fails", () => Promise.reject(new Error("no receiver"))],
  [
    "throws",
    () => {
      throw new Error("no receiver");
    },
  ],
])(
  "a tracer whose receiver %s delays the end for a moment at most, and does not change its outcome",
  async (_how, forceFlush) => {
    trace.setGlobalTracerProvider({
      getTracer: () => trace.getTracer("none"),
      forceFlush,
    } as never); // as an SDK's has it
    const beganMs = performance.now();
    const { life, logs } = begun(30_000, 60_000);
    life.tell({ type: "started" });
    life.tell({ type: "terminate" });

    expect(await life.ended).toBe(0);
    expect(logs.filter(({ msg }) => msg === "shutdown.completed")).toMatchObject([{ exitCode: 0 }]);
    expect(performance.now() - beganMs).toBeLessThan(15_000); // the rest of `totalMs` takes 30 s
  },
);

test("with no time left, flushes the tracer without waiting for it", async () => {
  const forceFlush = vi.fn(() => new Promise<void>(() => {}));
  trace.setGlobalTracerProvider({ getTracer: () => trace.getTracer("none"), forceFlush } as never); // as an SDK's has it
  const { life } = begun(0, 0);
  life.tell({ type: "terminate" });

  expect(await life.ended).toBe(1);
  expect(forceFlush).toHaveBeenCalledOnce();
});

function listening(environment: "development" | "production") {
  const lines: unknown[] = [];
  const events: LifecycleEvent[] = [];
  const line: Logger["info"] = (msg, data) => void lines.push([msg, data]);
  const emitter = new EventEmitter();
  const process = Object.assign(emitter, { env: {}, exit: () => undefined });
  // Safe: only these members of the logger are used.
  const log = { info: line, error: line } as Parameters<typeof listen>[1]["log"];
  const ended = Promise.withResolvers<0 | 1>();
  const tell = (event: LifecycleEvent) => void events.push(event);
  const tie = listen(process, { log, environment }, { tell, ended: ended.promise });
  return { process, lines, events, tie };
}

test("a second signal hurries the shutdown, unless it follows within 200 ms", async () => {
  const { process, lines, events, tie } = listening("production");
  process.emit("SIGTERM", "SIGTERM");
  process.emit("SIGINT", "SIGINT"); // as npm forwards it
  await expect
    .poll(() => {
      process.emit("SIGINT", "SIGINT");
      return lines;
    })
    .toEqual([
      ["shutdown.started", { signal: "SIGTERM" }],
      ["shutdown.hurried", { signal: "SIGINT" }],
    ]);
  expect(events).toEqual([
    { type: "terminate", skipsLinger: false },
    { type: "terminate", skipsLinger: false },
  ]);
  tie.ignore();
  expect(process.eventNames()).toEqual([]);
});

test("the first signal joins a shutdown that the caller has started, and the second hurries it", async () => {
  const { process, lines, events, tie } = listening("production");
  tie.isCallers = true;
  process.emit("SIGTERM", "SIGTERM");
  expect([events, tie.isCallers]).toEqual([[], false]);
  await expect
    .poll(() => {
      process.emit("SIGTERM", "SIGTERM");
      return lines.length;
    })
    .toBe(2);
  expect(events).toEqual([{ type: "terminate", skipsLinger: false }]);
});

test("only Ctrl+C in development skips the linger", () => {
  for (const [signal, skipsLinger] of [
    ["SIGINT", true],
    ["SIGTERM", false],
  ] as const) {
    const { process, events } = listening("development");
    process.emit(signal, signal);
    expect(events).toEqual([{ type: "terminate", skipsLinger }]);
  }
});

test("an error that nobody caught is logged, and ends the process", () => {
  const { process, lines, events } = listening("production");
  process.emit("uncaughtException", new Error("thrown"));
  process.emit("unhandledRejection", new Error("rejected"));
  expect(lines).toMatchObject([
    ["process.uncaught_exception", { message: "thrown" }],
    ["process.unhandled_rejection", { message: "rejected" }],
  ]);
  expect(events).toEqual([{ type: "fault" }, { type: "fault" }]);
});
