import type { DeclaredLabels } from "../../base/metrics/bounded-metrics.ts";
import { deliveryJob } from "../../parts/messages/delivery.ts";
import { runningKinds } from "../features/feature.ts";
import { builtInChannels } from "../handlers/message-handlers.ts";
import { configHandlers } from "../operators/config-handlers.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import { routeLabel } from "./run-metrics.ts";

/** keelson's routes, except those for configuration. */
const ownRoutes = ["POST /log", "GET /health/ready", "GET /health/live", "GET /metrics"] as const;

export function declaredLabels({ registry, options }: DeclaredServer): DeclaredLabels {
  const handlers = [...registry.handlers.values(), ...configHandlers(registry)];
  const routes = handlers.flatMap(({ route }) => route ?? []);
  return {
    routes: [...routes, ...ownRoutes].map((route) => routeLabel(route, options.basePath)),
    handlers: [deliveryJob, ...runningKinds.flatMap((kind) => [...registry[kind].keys()])],
    channels: [...builtInChannels, ...registry.channels.keys()],
  };
}
