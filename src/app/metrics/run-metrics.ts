import { isPermanent } from "../../base/errors/errors.ts";
import type { DeclaredLabels } from "../../base/metrics/bounded-metrics.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Clock } from "../../base/process/clock.ts";
import { deliveryJob } from "../../parts/messages/delivery.ts";
import { runningKinds } from "../features/feature.ts";
import { builtInChannels } from "../handlers/message-handlers.ts";
import { polled } from "../observe/run-lines.ts";
import {
  type ObservedRun,
  type RequestEnd,
  type RunObserver,
  schemeOf,
  type TaskEnd,
} from "../observe/run-observer.ts";
import { apiKeyRoutes } from "../operators/api-key-handlers.ts";
import { configHandlers } from "../operators/config-handlers.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";

export interface Measuring {
  readonly metrics: Metrics | undefined;
  /** Measures runs with the clock of their runtime. `undefined` if there is no exporter. */
  readonly observer: ((clock: Clock) => RunObserver) | undefined;
  readonly missing: string | undefined;
}

interface Measure {
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly basePath: string | undefined;
}

export function createRunMetrics(measure: Measure): RunObserver {
  return {
    ended: (run, end) => {
      if (end.kind === "request") measureRequest(measure, run, end);
      else if (end.kind === "schedule") measureSchedule(measure, run, end);
      else if (end.kind !== "run") measureMessage(measure, run, end, end.kind);
    },
  };
}

function measureRequest(
  { metrics, clock, basePath }: Measure,
  run: ObservedRun,
  { method = "", status }: RequestEnd,
): void {
  const { route, handler } = run;
  if (handler !== undefined && polled.test(handler)) return; // polls do not represent real traffic
  metrics.record("http.server.request.duration", secondsOf(clock, run), {
    "http.request.method": method,
    "url.scheme": schemeOf(run),
    "http.route": route === undefined ? undefined : routeLabel(route, basePath),
    "http.response.status_code": String(status),
    "error.type": status >= 500 ? String(status) : undefined,
  });
}

function measureMessage(
  { metrics, clock }: Measure,
  run: ObservedRun,
  { outcome, attempt, sinceMs, channel, error }: TaskEnd,
  kind: "event" | "job" | "delivery",
): void {
  const { startMs, handler, isReplayed } = run;
  if (isReplayed) return; // the work was done before
  const labels = { "keelson.kind": kind };
  metrics.record("messaging.process.duration", secondsOf(clock, run), {
    "messaging.system.name": "aws.sqs",
    "messaging.operation.name": "process",
    "error.type": outcome === "failed" ? "_OTHER" : undefined,
    ...labels,
    "keelson.handler": handler,
    "keelson.outcome": outcome,
  });
  if (outcome === "handed-back") return;
  if (sinceMs !== undefined)
    metrics.record("keelson.message.age", Math.max(0, startMs - sinceMs) / 1_000, labels);
  if (attempt !== undefined) metrics.record("keelson.message.attempts", attempt, labels);
  if (kind !== "delivery") return;
  const sent = outcome === "processed" ? "sent" : isPermanent(error) ? "refused" : "failed";
  metrics.record("keelson.deliveries", 1, { "keelson.channel": channel, "keelson.outcome": sent });
}

function measureSchedule(
  { metrics, clock }: Measure,
  run: ObservedRun,
  { outcome }: TaskEnd,
): void {
  // Every process tries each scheduled run, but only one does it.
  if (run.isReplayed || outcome === "handed-back") return;
  metrics.record("keelson.schedule.duration", secondsOf(clock, run), {
    "keelson.handler": run.handler,
    "keelson.outcome": outcome,
  });
}

/** Returns the path that clients see: `/api/files/:id` for `GET /files/:id` below `/api`. */
export function routeLabel(route: string, basePath = ""): string {
  return basePath + route.slice(route.indexOf(" ") + 1);
}

function secondsOf(clock: Clock, { startMs }: ObservedRun): number {
  return Math.max(0, clock.now() - startMs) / 1_000;
}

/** keelson's routes, without those for configuration. */
const ownRoutes = [
  "POST /log",
  "GET /health/ready",
  "GET /health/live",
  "GET /metrics",
  "GET /openapi.json",
] as const;

export function declaredLabels({ registry, options }: DeclaredServer): DeclaredLabels {
  const handlers = [
    ...registry.handlers.values(),
    ...configHandlers(registry),
    ...apiKeyRoutes(options),
  ];
  const routes = handlers.flatMap(({ route }) => route ?? []);
  return {
    routes: [...routes, ...ownRoutes].map((route) => routeLabel(route, options.basePath)),
    handlers: [deliveryJob, ...runningKinds.flatMap((kind) => [...registry[kind].keys()])],
    channels: [...builtInChannels, ...registry.channels.keys()],
  };
}
