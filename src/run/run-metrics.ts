import { isPermanent } from "../errors/permanent-error.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { RequestEnd, RunObserver, TaskEnd } from "./run-observer.ts";
import type { RequestScope } from "./scope.ts";

/** Measures each run at its end. */
export function createRunMetrics(metrics: Metrics): RunObserver {
  return {
    began: () => undefined,
    ended: (scope, end) => {
      if (end.kind === "request") measureRequest(metrics, scope, end);
      else if (end.kind === "schedule") measureSchedule(metrics, scope, end);
      else if (end.kind !== "run") measureMessage(metrics, scope, end, end.kind);
    },
  };
}

/** Whose requests are left out: they come every few seconds, whatever the service does. */
const polled = /^keelson\.(?:health|metrics)\./;

function measureRequest(metrics: Metrics, scope: RequestScope, { method = "", status }: RequestEnd): void {
  const { route, handler } = scope;
  if (handler !== undefined && polled.test(handler)) return;
  metrics.record("http.server.request.duration", secondsOf(scope), {
    "http.request.method": method,
    "http.route": route === undefined ? undefined : routeLabel(route, scope.runtime.server.options.basePath),
    "http.response.status_code": String(status),
  });
}

function measureMessage(
  metrics: Metrics,
  scope: RequestScope,
  { outcome, attempt, sinceMs, channel, error }: TaskEnd,
  kind: "event" | "job" | "delivery",
): void {
  const { startMs, handler, isReplayed } = scope;
  if (isReplayed) return; // nothing was run: it was done before
  const labels = { "keelson.kind": kind };
  metrics.record("messaging.process.duration", secondsOf(scope), {
    "messaging.system": "aws_sqs",
    "messaging.operation.name": "process",
    ...labels,
    "keelson.handler": handler,
    "keelson.outcome": outcome,
  });
  if (outcome === "handed-back") return;
  if (sinceMs !== undefined) metrics.record("keelson.message.age", Math.max(0, startMs - sinceMs) / 1_000, labels);
  if (attempt !== undefined) metrics.record("keelson.message.attempts", attempt, labels);
  if (kind !== "delivery") return;
  const sent = outcome === "processed" ? "sent" : isPermanent(error) ? "refused" : "failed";
  metrics.record("keelson.deliveries", 1, { "keelson.channel": channel, "keelson.outcome": sent });
}

function measureSchedule(metrics: Metrics, scope: RequestScope, { outcome }: TaskEnd): void {
  // Every process tries, and one of them runs it.
  if (scope.isReplayed || outcome === "handed-back") return;
  metrics.record("keelson.schedule.duration", secondsOf(scope), {
    "keelson.handler": scope.handler,
    "keelson.outcome": outcome,
  });
}

/** A route without its method, as clients see it: `GET /files/:id` is `/api/files/:id` below `/api`. */
export function routeLabel(route: string, basePath = ""): string {
  return basePath + route.slice(route.indexOf(" ") + 1);
}

function secondsOf({ runtime, startMs }: RequestScope): number {
  return Math.max(0, runtime.clock.now() - startMs) / 1_000;
}
