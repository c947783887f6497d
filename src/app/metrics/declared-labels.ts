import type { DeclaredLabels } from "../../base/metrics/bounded-metrics.ts";
import { deliveryJob } from "../../parts/messages/delivery.ts";
import { builtInChannels } from "../handlers/declare-messages.ts";
import { configHandlers } from "../operators/config-handlers.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import { routeLabel } from "./run-metrics.ts";

/** keelson's built-in routes, without the routes for configuration. */
const ownRoutes = ["POST /log", "GET /health/ready", "GET /health/live", "GET /metrics"] as const;

/** Returns the label values that the metrics of a server can have. */
export function declaredLabels({ registry, options }: DeclaredServer): DeclaredLabels {
  const { handlers, consumers, jobs, schedules, channels } = registry;
  const routes = [...handlers.values(), ...configHandlers(registry)].flatMap(
    ({ route }) => route ?? [],
  );
  return {
    routes: [...routes, ...ownRoutes].map((route) => routeLabel(route, options.basePath)),
    handlers: [
      deliveryJob,
      ...[handlers, consumers, jobs, schedules].flatMap((declared) => [...declared.keys()]),
    ],
    channels: [...builtInChannels, ...channels.keys()],
  };
}
