// Sides of a contest of `observe.ts`, in a process of their own: `node observed.ts <side>...`. X-Ray's SDK hooks into every promise of
// its process, so that no other side shares one with it.
import { createRequire } from "node:module";
import { context as contexts, propagation, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { BatchSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { lambdaHandler } from "../src/hosts/lambda/index.ts";
import { ignoring, joining, measuring } from "./feature.ts";
import { nanosecondsOf } from "./measure.ts";
import { type Invocable, invoking, limitsEvent, peer } from "./wrapped.ts";

/** How many spans were handed to the exporter, which drops them. */
let spans = 0;

/** The function of each side. */
const sides: Readonly<Record<string, () => Invocable | Promise<Invocable>>> = {
  joining: () => ours(joining),
  ignoring: () => ours(ignoring),
  spans: () => {
    const provider = registerSdk();
    const handler = ours(joining);
    // As OpenTelemetry's instrumentation does before the process may be frozen.
    return async (event, context) => {
      const answer = await handler(event, context);
      await provider.forceFlush();
      return answer;
    };
  },
  instrumented: async () => {
    const provider = registerSdk();
    const { AwsLambdaInstrumentation } = await import("@opentelemetry/instrumentation-aws-lambda");
    new AwsLambdaInstrumentation().setTracerProvider(provider);
    // Safe: these are its exports.
    const traced = createRequire(import.meta.url)("./traced-peer.cjs") as {
      handler: Invocable;
      inner: Invocable;
    };
    traced.inner = peer();
    return (event, context) => traced.handler(event, context);
  },
  xray: async () => {
    const { Tracer } = await import("@aws-lambda-powertools/tracer");
    const { captureLambdaHandler } = await import("@aws-lambda-powertools/tracer/middleware");
    const fromTracer = createRequire(import.meta.resolve("@aws-lambda-powertools/tracer"));
    // Safe: each closed segment is handed to it. It formats and sends them, which an exporter does elsewhere.
    const emitter = fromTracer("aws-xray-sdk-core/dist/lib/segment_emitter.js") as {
      send: () => void;
    };
    emitter.send = () => {
      spans += 1;
    };
    return peer({ middlewares: [captureLambdaHandler(new Tracer({ serviceName: "files" }))] });
  },
  emf: () => ours(measuring),
  logMetrics: async () => {
    const { Metrics, MetricUnit } = await import("@aws-lambda-powertools/metrics");
    const { logMetrics } = await import("@aws-lambda-powertools/metrics/middleware");
    const metrics = new Metrics({ namespace: "keelson", serviceName: "keelson" });
    const onRead = () => {
      metrics.addDimension("http.route", "/limits/silent");
      metrics.addMetadata("http.request.method", "GET");
      metrics.addMetadata("http.response.status_code", "200");
      metrics.addMetric("http.server.request.duration", MetricUnit.Seconds, 0.001);
      metrics.addMetric("keelson.config.reads", MetricUnit.Count, 1);
      metrics.addMetric("keelson.config.age", MetricUnit.Seconds, 0.001);
    };
    return peer({ middlewares: [logMetrics(metrics)], onRead });
  },
};

function ours(server: typeof joining): Invocable {
  return lambdaHandler(server, "files.limits.silent") as Invocable; // safe: it answers events of an HTTP API
}

/** What NodeSDK registers, with an exporter that drops what it gets. */
function registerSdk(): TracerProvider {
  const exporter: ConstructorParameters<typeof BatchSpanProcessor>[0]["exporter"] = {
    export: (given, done) => {
      spans += given.length;
      done({ code: 0 });
    },
    shutdown: async () => undefined,
  };
  const provider = new TracerProvider({ spanProcessors: [new BatchSpanProcessor({ exporter })] });
  contexts.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(provider);
  return provider;
}

const event = limitsEvent("silent");
event.headers["traceparent"] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
event.headers["tracestate"] = "vendor=00f067aa0ba902b7";

const [, , ...names] = process.argv;
const opened = new Map<string, (times: number) => Promise<void>>();
for (const name of names) {
  const handler = await sides[name]?.();
  if (handler !== undefined) opened.set(name, invoking(handler, event));
}
process.on(
  "message",
  async ({ name, times }: { readonly name: string; readonly times: number }) => {
    const before = spans;
    const work = opened.get(name);
    const nanoseconds = work === undefined ? Number.NaN : await nanosecondsOf(work, times);
    process.send?.({ nanoseconds, spans: spans - before });
  },
);
process.on("disconnect", () => process.exit());
process.send?.("ready");
